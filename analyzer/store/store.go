// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"time"

	_ "modernc.org/sqlite" // the driver
)

const (
	// busyTimeout bounds the wait for another process that writes.
	busyTimeout = 2 * time.Second
	// layout is the version of the tables, as PRAGMA user_version.
	layout = 1
	// maxAdvice bounds what is kept; see forget.
	maxAdvice = 10000
)

// ErrNewer means that the file was written by a newer version of Attune.
var ErrNewer = errors.New("the knowledge store was written by a newer version of Attune")

// tables are those of layout 1. A row of advice is one recommendation for one
// application; by_hand holds the changes that were made for it by hand.
const tables = `
CREATE TABLE advice (
	id          TEXT NOT NULL,
	application TEXT NOT NULL,
	executable  TEXT NOT NULL,
	tunlet      TEXT NOT NULL,
	why         TEXT NOT NULL,
	changes     TEXT NOT NULL,
	predicted   REAL NOT NULL,
	confidence  REAL NOT NULL,
	gain        REAL NOT NULL,
	given       INTEGER NOT NULL,
	kept        INTEGER NOT NULL,
	undone      INTEGER NOT NULL,
	first       INTEGER NOT NULL,
	last        INTEGER NOT NULL,
	PRIMARY KEY (id, application)
) STRICT;
CREATE INDEX advice_by_application ON advice (application);
CREATE TABLE by_hand (
	advice TEXT NOT NULL,
	node   TEXT NOT NULL,
	change TEXT NOT NULL,
	PRIMARY KEY (node, change)
) STRICT;
PRAGMA user_version = 1;
`

// Store is an open knowledge store. Close ends it.
type Store struct{ db *sql.DB }

// Open opens the store in a file, which is made if there is none. Its directory
// has to be there.
func Open(ctx context.Context, path string) (*Store, error) { return open(ctx, path, busyTimeout) }

// open is Open with another bound on the wait for a process that writes.
func open(ctx context.Context, path string, wait time.Duration) (*Store, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) // SQLite would let everybody read it
	if err != nil {
		return nil, fmt.Errorf("open the knowledge store: %w", err)
	}
	if err := file.Close(); err != nil {
		return nil, err
	}
	options := url.Values{"_pragma": {fmt.Sprintf("busy_timeout(%d)", wait.Milliseconds()), "synchronous(normal)"}, "_txlock": {"immediate"}}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: path, RawQuery: options.Encode()}).String())
	if err != nil {
		return nil, fmt.Errorf("open the knowledge store %s: %w", path, err)
	}
	s := &Store{db: db}
	if err := s.prepare(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("knowledge store %s: %w", path, err), db.Close())
	}
	return s, nil
}

// prepare makes the tables, once. Mostly they are there, and nothing is locked.
func (s *Store) prepare(ctx context.Context) error {
	if there, err := made(ctx, s.db); err != nil || there {
		return err
	}
	return s.write(ctx, func(tx *sql.Tx) error {
		if there, err := made(ctx, tx); err != nil || there { // by another process meanwhile
			return err
		}
		_, err := tx.ExecContext(ctx, tables)
		return err
	})
}

// made reports whether the tables are there.
func made(ctx context.Context, db interface {
	QueryRowContext(ctx context.Context, query string, arguments ...any) *sql.Row
}) (bool, error) {
	var version int
	if err := db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return false, err
	}
	if version > layout {
		return false, fmt.Errorf("%w (layout %d, this one knows %d); use that version, or remove the file", ErrNewer, version, layout)
	}
	return version == layout, nil
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

// Close closes the file.
func (s *Store) Close() error { return s.db.Close() }
