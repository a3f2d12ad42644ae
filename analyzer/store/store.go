// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/attune-hpc/attune/internal/sqlfile"
)

const (
	// busyTimeout bounds the wait for another process that writes.
	busyTimeout = 2 * time.Second
	// maxAdvice bounds what is kept; see forget.
	maxAdvice = 10000
)

// tables are the first layout's. A row of advice is one recommendation for one
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
`

// Store is an open knowledge store. Close ends it.
type Store struct {
	db   *sqlfile.File
	most int // pieces of advice that are kept
}

// Open opens the store in a file, which is made if there is none. Its directory
// has to be there.
func Open(ctx context.Context, path string) (*Store, error) { return open(ctx, path, busyTimeout) }

// open is Open with another bound on the wait for a process that writes.
func open(ctx context.Context, path string, wait time.Duration) (*Store, error) {
	db, err := sqlfile.Open(ctx, path, sqlfile.Options{Wait: wait, Migrations: []string{tables}})
	switch {
	case errors.Is(err, sqlfile.ErrNewer):
		return nil, fmt.Errorf("knowledge store %s: %w; use that version, or remove the file", path, err)
	case err != nil:
		return nil, fmt.Errorf("knowledge store %s: %w", path, err)
	}
	return &Store{db, maxAdvice}, nil
}

// Close closes the file.
func (s *Store) Close() error { return s.db.Close() }
