// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"cmp"
	"context"
	"database/sql"
	"path/filepath"
	"time"

	"github.com/attune-hpc/attune/internal/postgres"
)

// maxDocument bounds the document of one task, bytes: that of 100,000 processes.
const maxDocument = 256 << 20

// busyTimeout bounds the wait for another process that writes, and for a server.
const busyTimeout = 5 * time.Second

// Store is an open archive. Close ends it.
type Store struct {
	db     *sql.DB
	engine engine
	path   string
	shared bool // by several users, who read each other's tasks
	// maxDocument bounds the document of one task, bytes.
	maxDocument int64
}

// engine is how SQLite and PostgreSQL differ.
type engine interface {
	// Write runs do in a transaction.
	Write(ctx context.Context, do func(*sql.Tx) error) error
	// statement is one whose parameters are marked ?, as the engine has it.
	statement(text string) string
	// insert adds the rows of tasks, and returns the numbers of those that were not there,
	// by id.
	insert(ctx context.Context, prepared *statements, tasks []encoded) (numbers map[string]int64, err error)
	// forget removes the oldest tasks beyond the limit of what is kept, and returns how
	// many.
	forget(ctx context.Context, tx *sql.Tx) (forgotten int64, err error)
	// explain says what an error means, and what to do.
	explain(err error) error
}

// options are what tests choose.
type options struct {
	wait       time.Duration
	limit      int64 // of a file, bytes
	document   int64 // of a task at most, bytes; 0: maxDocument
	migrations []string
}

// Open opens the archive at a place: in the database of a PostgreSQL server that a URL
// names (postgres://USER@HOST/DATABASE), or else in a file, which is made if there is
// none. Its directory has to be there.
func Open(ctx context.Context, place string) (*Store, error) {
	return open(ctx, place, options{wait: busyTimeout, limit: maxBytes, migrations: migrations})
}

func open(ctx context.Context, place string, o options) (*Store, error) {
	if postgres.IsURL(place) {
		return openServer(ctx, place, o)
	}
	return openFile(ctx, place, journal(filepath.Dir(place)), o)
}

func (o *options) maxDocument() int64 { return cmp.Or(o.document, maxDocument) }

// query asks for rows. Parameters are marked ?.
func (s *Store) query(ctx context.Context, text string, parameters ...any) (*sql.Rows, error) {
	return s.db.QueryContext(ctx, s.engine.statement(text), parameters...)
}

// Path is the file, or the URL of the database without password.
func (s *Store) Path() string { return s.path }

// Close closes the file or the connections.
func (s *Store) Close() error { return s.engine.explain(s.db.Close()) }
