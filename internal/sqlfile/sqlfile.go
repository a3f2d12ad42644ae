// SPDX-License-Identifier: Apache-2.0

// Package sqlfile keeps tables in a file of SQLite's that several processes of its owner
// read and write.
package sqlfile

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"time"

	"modernc.org/sqlite"

	"github.com/attune-hpc/attune/internal/beat"
)

// ErrNewer means that the tables were made by a newer version of Attune.
var ErrNewer = errors.New("it was written by a newer version of Attune")

// Options say how a file is opened.
type Options struct {
	// Wait bounds the wait for another process that writes.
	Wait time.Duration
	// Pragmas are executed for each connection, as "journal_mode(wal)". "synchronous(normal)" is
	// safe with a write-ahead log only.
	Pragmas []string
	// Migrations make the tables, each from what those before it made. How many were
	// executed stands in the file.
	Migrations []string
}

// File is an open file. It is safe for concurrent use. Close ends it.
type File struct{ *sql.DB }

// Open opens a file, which is made if there is none, readable for its owner only. Its
// directory has to be there.
func Open(ctx context.Context, path string, o Options) (*File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) // SQLite would let everybody read it
	if err != nil {
		return nil, err
	}
	if err := file.Close(); err != nil {
		return nil, err
	}
	options := url.Values{
		"_pragma": append([]string{fmt.Sprintf("busy_timeout(%d)", o.Wait.Milliseconds())}, o.Pragmas...), "_txlock": {"immediate"},
	}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: path, RawQuery: options.Encode()}).String())
	if err != nil {
		return nil, err
	}
	f := &File{db}
	if err := patiently(ctx, o.Wait, func() error { return f.migrate(ctx, o.Migrations) }); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return f, nil
}

// Code is SQLite's primary result code of an error; false if it is not one of SQLite's.
func Code(err error) (code int, ok bool) {
	if e, is := errors.AsType[*sqlite.Error](err); is {
		return e.Code() & 0xff, true
	}
	return 0, false
}

// Busy is the code of a file that another process has locked.
const Busy = 5

// busyPause lies between two tries.
const busyPause = 5 * time.Millisecond

// patiently tries again what found the file busy. SQLite waits by itself, but not where two
// processes might wait for each other: where both begin to keep a write-ahead log.
func patiently(ctx context.Context, wait time.Duration, try func() error) error {
	for end := time.Now().Add(wait); ; {
		err := try()
		if code, ok := Code(err); !ok || code != Busy || time.Now().After(end) {
			return err
		}
		if !beat.Pause(ctx, busyPause) {
			return err
		}
	}
}

// migrate makes the tables what this version knows. Mostly they are, and nothing is
// locked.
func (f *File) migrate(ctx context.Context, migrations []string) error {
	executed, err := version(ctx, f, len(migrations))
	if err != nil || executed == len(migrations) {
		return err
	}
	return f.Write(ctx, func(tx *sql.Tx) error {
		executed, err := version(ctx, tx, len(migrations)) // by another process meanwhile
		if err != nil {
			return err
		}
		if err := Execute(ctx, tx, migrations[executed:]); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", len(migrations)))
		return err
	})
}

// version is how many migrations were executed; ErrNewer if more than are known.
func version(ctx context.Context, db interface {
	QueryRowContext(ctx context.Context, query string, arguments ...any) *sql.Row
}, known int) (version int, err error) {
	if err := db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return 0, err
	}
	return version, CheckVersion(version, known)
}

// CheckVersion is ErrNewer if more migrations were executed than are known.
func CheckVersion(executed, known int) error {
	if executed > known {
		return fmt.Errorf("%w (layout %d, this one knows %d)", ErrNewer, executed, known)
	}
	return nil
}

// Execute executes statements, one after the other.
func Execute(ctx context.Context, tx *sql.Tx, statements []string) error {
	for _, s := range statements {
		if _, err := tx.ExecContext(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// Write runs do in a transaction that nobody else writes beside.
func (f *File) Write(ctx context.Context, do func(*sql.Tx) error) error {
	tx, err := f.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}
