// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/attune-hpc/attune/internal/bounded"
)

// Filter says which tasks are meant. The zero value means all.
type Filter struct {
	// Category is the id of a category or its beginning (six digits at least), or a name.
	Category string
	// Since leaves out those that ended earlier.
	Since time.Time
	// Source leaves out those that others have measured.
	Source string
	// Job leaves out those that are of none or of another job of a batch system.
	Job string
	// Failed leaves out those that succeeded, Succeeded the others.
	Failed, Succeeded bool
	// Limit leaves out all but the latest; 0: no limit.
	Limit int
}

// where is the condition of a filter, with its parameters.
func (f Filter) where() (condition string, parameters []any) {
	conditions := []string{"1 = 1"}
	add := func(c string, p ...any) {
		conditions, parameters = append(conditions, c), append(parameters, p...)
	}
	if f.Category != "" {
		if isID(f.Category) { // all that begin so, by the index
			add("(name = ? OR category >= ? AND category < ?)", f.Category, f.Category, f.Category+"g")
		} else {
			add("name = ?", f.Category)
		}
	}
	if !f.Since.IsZero() {
		add("ended >= ?", f.Since.UnixMilli())
	}
	if f.Source != "" {
		add("source = ?", f.Source)
	}
	if f.Job != "" {
		add("job = ?", f.Job)
	}
	const succeeded = "(exit_type = 'normal' AND exit_code = 0)"
	if f.Failed {
		add("NOT " + succeeded)
	}
	if f.Succeeded {
		add(succeeded)
	}
	return " WHERE " + strings.Join(conditions, " AND "), parameters
}

// isID says whether a text may be the beginning of the id of a category.
func isID(text string) bool { return len(text) >= 6 && strings.Trim(text, "0123456789abcdef") == "" }

// Each calls do for each task of a filter, the latest first, until it fails. What it is
// given is its own. do returns at once: in a file without a write-ahead log nobody can write
// before Each has returned. [Store.EachTask] is for what takes longer.
func (s *Store) Each(ctx context.Context, f Filter, do func(Summary) error) error {
	where, parameters := f.where()
	query := "SELECT " + strings.Join(taskColumns, ", ") + " FROM task" + where + " ORDER BY ended DESC, id"
	if f.Limit > 0 {
		query += fmt.Sprintf(" LIMIT %d", f.Limit)
	}
	rows, err := s.query(ctx, query, parameters...)
	if err != nil {
		return s.engine.explain(err)
	}
	defer rows.Close()
	numbers := make([]sql.NullFloat64, len(measures))
	for rows.Next() {
		var t Summary
		var ended int64
		into := []any{&t.ID, &t.Name, &t.Category, &t.Pattern, &t.Source, &t.Job, &t.Host, &ended, &t.Exit, &t.ExitCode}
		for i := range numbers {
			into = append(into, &numbers[i])
		}
		if err := rows.Scan(into...); err != nil {
			return s.engine.explain(err)
		}
		t.End = time.UnixMilli(ended).UTC()
		t.Numbers = make(map[string]float64)
		for i, n := range numbers {
			if n.Valid {
				t.Numbers[measures[i]] = n.Float64
			}
		}
		if err := do(t); err != nil {
			return err
		}
	}
	return s.engine.explain(rows.Err())
}

// EachTask calls do with each task of a filter and its id, the latest first, until it fails. Others
// can write meanwhile: it reads all ids first, and then one task after the other. [ErrUnreadable] if it
// has left out such a one, and has gone through all others.
func (s *Store) EachTask(ctx context.Context, f Filter, do func(id string, t *Task) error) error {
	var ids []string
	if err := s.Each(ctx, f, func(t Summary) error {
		ids = append(ids, t.ID)
		return nil
	}); err != nil {
		return err
	}
	var unreadable []error
	for _, id := range ids {
		t, err := s.Task(ctx, id)
		if errors.Is(err, ErrUnknown) {
			continue // removed meanwhile
		}
		if errors.Is(err, ErrUnreadable) {
			unreadable = append(unreadable, err)
			continue
		}
		if err != nil {
			return err
		}
		if err := do(id, t); err != nil {
			return err
		}
	}
	if len(unreadable) > 0 {
		return fmt.Errorf("left out of %d tasks are %d, such as: %w", len(ids), len(unreadable), unreadable[0])
	}
	return nil
}

// List returns the tasks of a filter, the latest first.
func (s *Store) List(ctx context.Context, f Filter) ([]Summary, error) {
	var out []Summary
	err := s.Each(ctx, f, func(t Summary) error {
		out = append(out, t)
		return nil
	})
	return out, err
}

// Find returns the id of a task by its beginning; [ErrUnknown] or [ErrAmbiguous].
func (s *Store) Find(ctx context.Context, beginning string) (id string, err error) {
	rows, err := s.query(ctx, "SELECT id FROM task WHERE id >= ? AND id < ? ORDER BY id LIMIT 2", beginning, beginning+"g")
	if err != nil {
		return "", s.engine.explain(err)
	}
	defer rows.Close()
	for rows.Next() {
		if id != "" {
			return "", fmt.Errorf("task %s: %w", beginning, ErrAmbiguous)
		}
		if err := rows.Scan(&id); err != nil {
			return "", s.engine.explain(err)
		}
	}
	if id == "" && rows.Err() == nil {
		return "", fmt.Errorf("task %s: %w", beginning, ErrUnknown)
	}
	return id, s.engine.explain(rows.Err())
}

// Task returns a task by its id; [ErrUnknown], [ErrUnreadable].
func (s *Store) Task(ctx context.Context, id string) (*Task, error) {
	var body []byte
	err := s.db.QueryRowContext(ctx, s.engine.statement("SELECT body FROM document WHERE number = (SELECT number FROM task WHERE id = ?)"), id).Scan(&body)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("task %s: %w", id, ErrUnknown)
	}
	if err != nil {
		return nil, s.engine.explain(err)
	}
	t, err := s.decode(body)
	if err != nil {
		return nil, fmt.Errorf("archive %s: task %s: %w: %w", s.path, id, ErrUnreadable, err)
	}
	return t, nil
}

// decode returns the task of a compressed document.
func (s *Store) decode(body []byte) (*Task, error) {
	z, err := bounded.Zstd(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	text, err := bounded.ReadAll("its document", z, s.maxDocument)
	if err != nil {
		return nil, err
	}
	t := new(Task)
	return t, json.Unmarshal(text, t)
}

// Category is a kind of task.
type Category struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	Pattern string    `json:"pattern"`
	Tasks   int       `json:"tasks"`
	Failed  int       `json:"failed"`
	Last    time.Time `json:"last"`
	// WallSeconds is that of all tasks together.
	WallSeconds float64 `json:"wall_seconds"`
}

// Categories returns the categories of the tasks of a filter, that with the latest task
// first.
func (s *Store) Categories(ctx context.Context, f Filter) (out []Category, err error) {
	where, parameters := f.where()
	rows, err := s.query(ctx, `SELECT category, max(name), max(pattern), count(*),
		sum(CASE WHEN exit_type = 'normal' AND exit_code = 0 THEN 0 ELSE 1 END), max(ended), coalesce(sum(wall_seconds), 0)
		FROM task`+where+" GROUP BY category ORDER BY max(ended) DESC, category", parameters...)
	if err != nil {
		return nil, s.engine.explain(err)
	}
	defer rows.Close()
	for rows.Next() {
		var c Category
		var last int64
		if err := rows.Scan(&c.ID, &c.Name, &c.Pattern, &c.Tasks, &c.Failed, &last, &c.WallSeconds); err != nil {
			return nil, s.engine.explain(err)
		}
		c.Last = time.UnixMilli(last).UTC()
		out = append(out, c)
	}
	return out, s.engine.explain(rows.Err())
}

// Values returns what the tasks of a filter have in a field, sorted.
func (s *Store) Values(ctx context.Context, f Filter, field string) (out []float64, err error) {
	if !slices.Contains(measures, field) {
		return nil, fmt.Errorf("field %q: %w; there are %s", field, ErrUnknown, strings.Join(measures, ", "))
	}
	name := column(field)
	where, parameters := f.where()
	rows, err := s.query(ctx, "SELECT "+name+" FROM task"+where+" AND "+name+" IS NOT NULL", parameters...)
	if err != nil {
		return nil, s.engine.explain(err)
	}
	defer rows.Close()
	for rows.Next() {
		var v float64
		if err := rows.Scan(&v); err != nil {
			return nil, s.engine.explain(err)
		}
		out = append(out, v)
	}
	slices.Sort(out) // faster than SQLite does
	return out, s.engine.explain(rows.Err())
}
