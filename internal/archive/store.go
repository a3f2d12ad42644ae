// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/sqlfile"
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
	db    *sqlfile.File
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
	s := &Store{path: path, limit: o.limit}
	var err error
	s.db, err = sqlfile.Open(ctx, path, sqlfile.Options{Wait: o.wait, Migrations: o.migrations, Pragmas: []string{
		"page_size(16384)", "journal_mode(" + journal(filepath.Dir(path)) + ")", "synchronous(normal)", fmt.Sprintf("journal_size_limit(%d)", maxLog),
	}})
	if err != nil {
		return nil, s.explain(err)
	}
	return s, nil
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

// Path is the file.
func (s *Store) Path() string { return s.path }

// Close closes the file.
func (s *Store) Close() error { return s.explain(s.db.Close()) }
