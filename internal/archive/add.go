// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
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

// atOnce is how many documents a statement adds.
const atOnce = 16

// taskColumns are those of [values].
var taskColumns = func() []string {
	names := []string{"id", "name", "category", "pattern", "source", "job", "host", "ended", "exit_type", "exit_code"}
	for _, field := range measures {
		names = append(names, column(field))
	}
	return names
}()

// insertion adds n rows of tasks, but those that are there.
func insertion(n int) string {
	return "INSERT INTO task (" + strings.Join(taskColumns, ", ") + ") VALUES " + rowsText(n, len(taskColumns)) + " ON CONFLICT DO NOTHING"
}

// rowsText has marks for n rows of so many columns.
func rowsText(n, columns int) string {
	row := "(?" + strings.Repeat(", ?", columns-1) + ")"
	return row + strings.Repeat(", "+row, n-1)
}

// Add adds tasks: all that are not there yet, or none. A server gets neither the environments of their
// commands nor what was captured of their output.
func (s *Store) Add(ctx context.Context, tasks ...*Task) (added Added, err error) {
	for i, t := range tasks {
		if err := t.Check(); err != nil {
			return Added{}, fmt.Errorf("task %d of %d: %w", i+1, len(tasks), err)
		}
	}
	if s.shared {
		tasks = forOthers(tasks)
	}
	all, err := s.encodeAll(tasks) // before others have to wait
	if err != nil {
		return Added{}, err
	}
	err = s.engine.Write(ctx, func(tx *sql.Tx) error {
		if added, err = s.insertAll(ctx, tx, all); err != nil {
			return err
		}
		added.Forgotten, err = s.engine.forget(ctx, tx)
		return err
	})
	if err != nil {
		return Added{}, s.engine.explain(err)
	}
	return added, nil
}

// encoded is a task as it is kept.
type encoded struct {
	*Task
	id   string
	text []byte
}

// encodeAll encodes tasks, in the order of their ids.
func (s *Store) encodeAll(tasks []*Task) ([]encoded, error) {
	all := make([]encoded, len(tasks))
	for i, t := range tasks {
		var err error
		if all[i], err = encodeWithin(t, s.maxDocument); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(all, func(a, b encoded) int { return cmp.Compare(a.id, b.id) })
	return all, nil
}

// encodeWithin encodes a task so that its document has at most so many bytes: by far the most of a large
// one are its processes, of which those that took least are left out.
func encodeWithin(t *Task, most int64) (encoded, error) {
	all, err := encodeLargest(t, len(t.Account.Tree))
	if err != nil || all.size() <= most {
		return all, err
	}
	none, err := encodeLargest(t, 0)
	if err != nil {
		return encoded{}, err
	}
	if none.size() > most {
		return encoded{}, fmt.Errorf("%w: its document has %d bytes without processes, and may have %d", ErrInvalid, none.size(), most)
	}
	// Those that took most are somewhat larger than the others.
	for n := int64(len(t.Account.Tree)) * (most - none.size()) / (all.size() - none.size()) * 19 / 20; ; n /= 2 {
		if kept, err := encodeLargest(t, int(n)); err != nil || kept.size() <= most {
			return kept, err
		}
	}
}

// encodeLargest encodes a task with so many of its processes.
func encodeLargest(t *Task, n int) (encoded, error) {
	kept := *t
	kept.Account = t.Account.WithLargest(n)
	id, text, err := kept.encode()
	return encoded{&kept, id, text}, err
}

func (e *encoded) size() int64 { return int64(len(e.text)) }

// statements are prepared once in a transaction, and end with it.
type statements struct {
	engine engine
	tx     *sql.Tx
	made   map[string]*sql.Stmt // by text
}

func (p *statements) of(ctx context.Context, text string) (*sql.Stmt, error) {
	if made := p.made[text]; made != nil {
		return made, nil
	}
	made, err := p.tx.PrepareContext(ctx, p.engine.statement(text))
	p.made[text] = made
	return made, err
}

// insertAll adds tasks in the order of their ids: two who add the same ones do not wait for
// each other.
func (s *Store) insertAll(ctx context.Context, tx *sql.Tx, all []encoded) (added Added, err error) {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return Added{}, err
	}
	prepared := &statements{s.engine, tx, make(map[string]*sql.Stmt)}
	for some := range slices.Chunk(all, atOnce) {
		numbers, err := s.engine.insert(ctx, prepared, some)
		if err != nil {
			return Added{}, err
		}
		var rows []any
		for _, t := range some {
			if number, isNew := numbers[t.id]; isNew {
				rows = append(rows, number, z.EncodeAll(t.text, nil))
				delete(numbers, t.id) // the same may be there twice
			}
		}
		added.New, added.Known = added.New+len(rows)/2, added.Known+len(some)-len(rows)/2
		if len(rows) == 0 {
			continue
		}
		documents, err := prepared.of(ctx, "INSERT INTO document (number, body) VALUES "+rowsText(len(rows)/2, 2))
		if err != nil {
			return Added{}, err
		}
		if _, err := documents.ExecContext(ctx, rows...); err != nil {
			return Added{}, err
		}
	}
	return added, nil
}

// values are those of the columns of a task.
func values(t *Task, id string) []any {
	category, pattern := t.category()
	a := &t.Account
	out := []any{id, clean(t.name()), category, clean(pattern), clean(t.Source), clean(t.Job), clean(a.Host.Name), a.End.UnixMilli(), clean(a.Exit.Type), a.Exit.Code}
	for _, field := range measures {
		if v, known := t.Number(field); known {
			out = append(out, v)
		} else {
			out = append(out, nil)
		}
	}
	return out
}

// clean is a text without what PostgreSQL does not take: null bytes, and what is not UTF-8.
func clean(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}

// Remove removes tasks by their ids: all, or none. What is not there is removed already.
func (s *Store) Remove(ctx context.Context, ids ...string) error {
	return s.engine.explain(s.engine.Write(ctx, func(tx *sql.Tx) error {
		for _, id := range ids {
			for _, text := range []string{"DELETE FROM document WHERE number = (SELECT number FROM task WHERE id = ?)", "DELETE FROM task WHERE id = ?"} {
				if _, err := tx.ExecContext(ctx, s.engine.statement(text), id); err != nil {
					return err
				}
			}
		}
		return nil
	}))
}
