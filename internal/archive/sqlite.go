// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"database/sql"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/sqlfile"
)

const (
	// maxBytes bounds what is kept in a file: about a million tasks.
	maxBytes = 1 << 30
	// maxLog bounds what a log of writes keeps on the disk once it was written back.
	maxLog = 16 << 20
)

// file is a file of SQLite's.
type file struct {
	*sqlfile.File
	path  string
	limit int64
}

// openFile opens an archive in a file, with a kind of log.
func openFile(ctx context.Context, path, kind string, o options) (*Store, error) {
	s := &file{path: path, limit: o.limit}
	var err error
	s.File, err = sqlfile.Open(ctx, path, sqlfile.Options{Wait: o.wait, Migrations: o.migrations, Pragmas: []string{
		"page_size(16384)", "journal_mode(" + kind + ")", "synchronous(" + synchronous(kind) + ")", fmt.Sprintf("journal_size_limit(%d)", maxLog),
	}})
	if err != nil {
		return nil, s.explain(err)
	}
	return &Store{db: s.DB, engine: s, path: path, maxDocument: o.maxDocument()}, nil
}

func (s *file) statement(text string) string { return text }

// insert adds one row at a time: SQLite's driver looks through all parameters of a statement
// for each of them.
func (s *file) insert(ctx context.Context, prepared *statements, tasks []encoded) (map[string]int64, error) {
	one, err := prepared.of(ctx, insertion(1))
	if err != nil {
		return nil, err
	}
	numbers := make(map[string]int64, len(tasks))
	for _, t := range tasks {
		result, err := one.ExecContext(ctx, values(t.Task, t.id)...)
		if err != nil {
			return nil, err
		}
		if n, err := result.RowsAffected(); err != nil || n == 0 {
			continue
		}
		if numbers[t.id], err = result.LastInsertId(); err != nil {
			return nil, err
		}
	}
	return numbers, nil
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

// synchronous says how often what is written is brought to the disk. After a power cut a
// write-ahead log has lost the last writes at most; with a journal that is deleted the file
// itself may be damaged, unless each step waits for the one before it.
func synchronous(journal string) string {
	if journal == "wal" {
		return "normal"
	}
	return "full"
}

// zfsMagic is ZFS's type of file system, which x/sys does not have.
const zfsMagic = 0x2fc12fc1

// forget removes the oldest tasks, a tenth at a time, until what is kept is within the
// limit; the room is used again. It returns how many went.
func (s *file) forget(ctx context.Context, tx *sql.Tx) (forgotten int64, err error) {
	for {
		var pages, free, size, tasks int64
		for pragma, into := range map[string]*int64{"page_count": &pages, "freelist_count": &free, "page_size": &size} {
			if err := tx.QueryRowContext(ctx, "PRAGMA "+pragma).Scan(into); err != nil {
				return forgotten, err
			}
		}
		if (pages-free)*size <= s.limit {
			return forgotten, nil
		}
		if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM task").Scan(&tasks); err != nil || tasks == 0 {
			return forgotten, err
		}
		const oldest = "(SELECT number FROM task ORDER BY ended, number LIMIT ?)"
		tenth := tasks/10 + 1
		if _, err := tx.ExecContext(ctx, "DELETE FROM document WHERE number IN "+oldest, tenth); err != nil {
			return forgotten, err
		}
		if _, err := tx.ExecContext(ctx, "DELETE FROM task WHERE number IN "+oldest, tenth); err != nil {
			return forgotten, err
		}
		forgotten += tenth
	}
}
