// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"time"

	"golang.org/x/sys/unix"
	_ "modernc.org/sqlite" // the driver
)

const (
	// busyTimeout bounds the wait for another process that writes.
	busyTimeout = 5 * time.Second
	// maxBytes bounds what is kept: about a million tasks.
	maxBytes = 1 << 30
	// maxLog bounds what a log of writes keeps on the disk once it was written back.
	maxLog = 16 << 20
)

// Store is an open archive. Close ends it.
type Store struct {
	db    *sql.DB
	path  string
	limit int64
}

// options are what tests choose.
type options struct {
	wait       time.Duration
	limit      int64
	migrations []string
}

// Open opens the archive in a file, which is made if there is none. Its directory has to
// be there.
func Open(ctx context.Context, path string) (*Store, error) {
	return open(ctx, path, options{busyTimeout, maxBytes, migrations})
}

func open(ctx context.Context, path string, o options) (*Store, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) // SQLite would let everybody read it
	if err != nil {
		return nil, fmt.Errorf("open the archive: %w", err)
	}
	if err := file.Close(); err != nil {
		return nil, err
	}
	pragmas := url.Values{
		"_pragma": {
			fmt.Sprintf("busy_timeout(%d)", o.wait.Milliseconds()), "page_size(16384)", "journal_mode(" + journal(path) + ")",
			"synchronous(normal)", fmt.Sprintf("journal_size_limit(%d)", maxLog),
		},
		"_txlock": {"immediate"},
	}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: path, RawQuery: pragmas.Encode()}).String())
	if err != nil {
		return nil, fmt.Errorf("open the archive %s: %w", path, err)
	}
	s := &Store{db: db, path: path, limit: o.limit}
	if err := patiently(ctx, o.wait, func() error { return s.migrate(ctx, o.migrations) }); err != nil {
		return nil, errors.Join(s.explain(err), db.Close())
	}
	return s, nil
}

// busyPause lies between two tries.
const busyPause = 5 * time.Millisecond

// patiently tries again what found the file busy. SQLite waits by itself, but not where two
// processes might wait for each other: where both begin to keep a write-ahead log.
func patiently(ctx context.Context, wait time.Duration, try func() error) error {
	for end := time.Now().Add(wait); ; {
		err := try()
		if !isBusy(err) || time.Now().After(end) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(busyPause):
		}
	}
}

// journal is the kind of log that a file system allows: a write-ahead log, in which those
// who read and those who write do not wait for each other, is memory that the processes of
// one machine share. On what may be a file system of several machines it would ruin the file.
func journal(path string) string {
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return "delete"
	}
	switch fs.Type {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC, unix.F2FS_SUPER_MAGIC, unix.OVERLAYFS_SUPER_MAGIC, zfsMagic:
		return "wal"
	}
	return "delete"
}

// zfsMagic is ZFS's type of file system, which x/sys does not have.
const zfsMagic = 0x2fc12fc1

// migrate makes the tables what this version knows. Mostly they are, and nothing is
// locked.
func (s *Store) migrate(ctx context.Context, migrations []string) error {
	version, err := s.version(ctx, s.db, len(migrations))
	if err != nil || version == len(migrations) {
		return err
	}
	return s.write(ctx, func(tx *sql.Tx) error {
		version, err := s.version(ctx, tx, len(migrations)) // by another process meanwhile
		if err != nil {
			return err
		}
		for _, m := range migrations[version:] {
			if _, err := tx.ExecContext(ctx, m); err != nil {
				return err
			}
		}
		_, err = tx.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", len(migrations)))
		return err
	})
}

// version is that of the tables; ErrNewer if it is above known.
func (s *Store) version(ctx context.Context, db interface {
	QueryRowContext(ctx context.Context, query string, arguments ...any) *sql.Row
}, known int) (version int, err error) {
	if err := db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return 0, err
	}
	if version > known {
		return 0, fmt.Errorf("%w (layout %d, this one knows %d)", ErrNewer, version, known)
	}
	return version, nil
}

// write runs do in a transaction.
func (s *Store) write(ctx context.Context, do func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// Path is the file.
func (s *Store) Path() string { return s.path }

// Close closes the file.
func (s *Store) Close() error { return s.explain(s.db.Close()) }
