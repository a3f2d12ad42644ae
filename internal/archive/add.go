// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// Added is what came of adding tasks.
type Added struct {
	// New were not there before, Known were.
	New   int `json:"new"`
	Known int `json:"known"`
	// Forgotten are the oldest tasks, which had to go for want of room.
	Forgotten int64 `json:"forgotten,omitempty"`
}

// insertTask has a mark for each column, in the order of [Store.insert].
var insertTask = func() string {
	names := []string{"id", "name", "category", "pattern", "source", "job", "host", "ended", "exit_type", "exit_code"}
	for _, m := range measures {
		names = append(names, m.Column)
	}
	return "INSERT INTO task (" + strings.Join(names, ", ") + ") VALUES (?" + strings.Repeat(", ?", len(names)-1) + ") ON CONFLICT DO NOTHING"
}()

// Add adds tasks: all that are not there yet, or none.
func (s *Store) Add(ctx context.Context, tasks ...*Task) (added Added, err error) {
	for i, t := range tasks {
		if err := t.check(); err != nil {
			return Added{}, fmt.Errorf("task %d of %d: %w", i+1, len(tasks), err)
		}
	}
	err = s.db.Write(ctx, func(tx *sql.Tx) error {
		if added, err = insert(ctx, tx, tasks); err != nil {
			return err
		}
		added.Forgotten, err = forget(ctx, tx, s.limit)
		return err
	})
	if err != nil {
		return Added{}, s.explain(err)
	}
	return added, nil
}

func insert(ctx context.Context, tx *sql.Tx, tasks []*Task) (added Added, err error) {
	task, err := tx.PrepareContext(ctx, insertTask)
	if err != nil {
		return Added{}, err
	}
	defer task.Close()
	document, err := tx.PrepareContext(ctx, "INSERT INTO document (number, body) VALUES (?, ?)")
	if err != nil {
		return Added{}, err
	}
	defer document.Close()
	z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return Added{}, err
	}
	var body []byte
	for _, t := range tasks {
		id, text, err := t.encode()
		if err != nil {
			return Added{}, err
		}
		result, err := task.ExecContext(ctx, values(t, id)...)
		if err != nil {
			return Added{}, err
		}
		if n, err := result.RowsAffected(); err != nil || n == 0 {
			added.Known++
			continue
		}
		added.New++
		number, err := result.LastInsertId()
		if err != nil {
			return Added{}, err
		}
		body = z.EncodeAll(text, body[:0])
		if _, err := document.ExecContext(ctx, number, body); err != nil {
			return Added{}, err
		}
	}
	return added, nil
}

// values are those of the columns of a task.
func values(t *Task, id string) []any {
	category, pattern := t.category()
	a := &t.Account
	out := []any{id, t.name(), category, pattern, t.Source, t.Job, a.Host.Name, a.End.UnixMilli(), a.Exit.Type, a.Exit.Code}
	for _, m := range measures {
		if v, known := t.Number(m.Field); known {
			out = append(out, v)
		} else {
			out = append(out, nil)
		}
	}
	return out
}

// forget removes the oldest tasks, a tenth at a time, until what is kept is within the
// limit; the room is used again. It returns how many went.
func forget(ctx context.Context, tx *sql.Tx, limit int64) (forgotten int64, err error) {
	for {
		var pages, free, size, tasks int64
		for pragma, into := range map[string]*int64{"page_count": &pages, "freelist_count": &free, "page_size": &size} {
			if err := tx.QueryRowContext(ctx, "PRAGMA "+pragma).Scan(into); err != nil {
				return forgotten, err
			}
		}
		if (pages-free)*size <= limit {
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
