// SPDX-License-Identifier: Apache-2.0

// Package postgres keeps tables in a database of a PostgreSQL server that programs on
// several nodes read and write.
package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/attune-hpc/attune/internal/sqlfile"
)

// Options say how a database is opened.
type Options struct {
	// URL is that of the database, as libpq has it: postgres://USER@HOST/DATABASE. What is
	// not in it comes from PGHOST and the like, a service file, and for the password
	// ~/.pgpass.
	URL string
	// Schema is where the tables are, unless the URL has a search_path. Migrations may
	// make it.
	Schema string
	// Wait bounds the wait for a connection, and for another program's lock.
	Wait time.Duration
	// Migrations make the tables, each from what those before it made. How many were
	// executed stands in the table "layout".
	Migrations []string
}

// Database is an open database. It is safe for concurrent use. Close ends it.
type Database struct{ *sql.DB }

// IsURL says whether a text names a database here, not a file.
func IsURL(text string) bool {
	return strings.HasPrefix(text, "postgres://") || strings.HasPrefix(text, "postgresql://")
}

// HasPassword says whether a URL has a password in it.
func HasPassword(text string) bool {
	u, err := url.Parse(text)
	if err != nil {
		return strings.Contains(text, "@") // what cannot be read may have one
	}
	_, has := u.User.Password()
	return has || u.Query().Has("password") || u.Query().Has("sslpassword")
}

// ErrURL means that a URL cannot be read.
var ErrURL = errors.New("no address of a PostgreSQL database")

// Name is a URL as it may be shown to anybody: without password.
func Name(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "postgres://"
	}
	if u.User != nil {
		u.User = url.User(u.User.Username())
	}
	options := u.Query()
	options.Del("password")
	options.Del("sslpassword")
	u.RawQuery = options.Encode()
	return u.String()
}

// Open connects to the database, and makes the tables what this version knows. [ErrURL] if
// the URL cannot be read; [sqlfile.ErrNewer].
func Open(ctx context.Context, o Options) (*Database, error) {
	config, err := pgx.ParseConfig(o.URL)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrURL, err) // pgx leaves the password out
	}
	if config.ConnectTimeout == 0 || config.ConnectTimeout > o.Wait {
		config.ConnectTimeout = o.Wait
	}
	for name, value := range map[string]string{
		"search_path": o.Schema, "application_name": "attune", "lock_timeout": strconv.FormatInt(o.Wait.Milliseconds(), 10),
	} {
		if config.RuntimeParams[name] == "" {
			config.RuntimeParams[name] = value
		}
	}
	d := &Database{stdlib.OpenDB(*config)}
	if err := d.migrate(ctx, o); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// migrate executes what was not executed yet. Mostly that is nothing, and who may only
// read and add can do so.
func (d *Database) migrate(ctx context.Context, o Options) error {
	executed, err := version(ctx, d, len(o.Migrations))
	if err != nil || executed == len(o.Migrations) {
		return err
	}
	return d.Write(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock(hashtext('attune layout'))"); err != nil {
			return err
		}
		executed, err := version(ctx, tx, len(o.Migrations)) // by another program meanwhile
		if err != nil {
			return err
		}
		if executed == 0 {
			if err := begin(ctx, tx, o.Schema); err != nil {
				return err
			}
		}
		if err := sqlfile.Execute(ctx, tx, o.Migrations[executed:]); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "UPDATE layout SET version = $1", len(o.Migrations))
		return err
	})
}

// begin makes the schema, if the tables are to be in it, and the table of the layout.
func begin(ctx context.Context, tx *sql.Tx, schema string) error {
	var path string
	if err := tx.QueryRowContext(ctx, "SHOW search_path").Scan(&path); err != nil {
		return err
	}
	statements := []string{"CREATE TABLE IF NOT EXISTS layout (version INTEGER NOT NULL)", "INSERT INTO layout VALUES (0)"}
	if path == schema {
		statements = append([]string{"CREATE SCHEMA IF NOT EXISTS " + pgx.Identifier{schema}.Sanitize()}, statements...)
	}
	return sqlfile.Execute(ctx, tx, statements)
}

// version is how many migrations were executed; ErrNewer if more than are known.
func version(ctx context.Context, db interface {
	QueryRowContext(ctx context.Context, query string, arguments ...any) *sql.Row
}, known int) (version int, err error) {
	// to_regclass alone may answer from what the connection remembers, from before another
	// one made the schema; a statement that reads a table forgets that first.
	var there bool
	if err := db.QueryRowContext(ctx, "SELECT EXISTS (SELECT FROM pg_class WHERE oid = to_regclass('layout'))").Scan(&there); err != nil || !there {
		return 0, err
	}
	if err := db.QueryRowContext(ctx, "SELECT version FROM layout").Scan(&version); err != nil {
		return 0, err
	}
	return version, sqlfile.CheckVersion(version, known)
}

// Write runs do in a transaction.
func (d *Database) Write(ctx context.Context, do func(*sql.Tx) error) error {
	tx, err := d.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		_ = tx.Rollback() // the connection may be gone, and the transaction with it
		return err
	}
	return tx.Commit()
}

// Code is the SQLSTATE of an error; empty if the server did not send one.
func Code(err error) string {
	if e, is := errors.AsType[*pgconn.PgError](err); is {
		return e.Code
	}
	return ""
}

// Away says whether an error is that of a server that does not answer, or not yet or no
// longer, and not its answer.
func Away(err error) bool {
	switch code := Code(err); {
	case strings.HasPrefix(code, "08"), strings.HasPrefix(code, "57P"), code == "53300": // connections
		return true
	case code != "":
		return false
	}
	var connect *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &connect) || errors.As(err, &network) || errors.Is(err, context.DeadlineExceeded) || pgconn.Timeout(err)
}

// Marks numbers the parameters of a statement, which are marked ? in SQLite and $1, $2 in
// PostgreSQL. A ? may stand for nothing else in it.
func Marks(statement string) string {
	parts := strings.Split(statement, "?")
	var b strings.Builder
	for i, part := range parts {
		if i > 0 {
			b.WriteString("$" + strconv.Itoa(i))
		}
		b.WriteString(part)
	}
	return b.String()
}
