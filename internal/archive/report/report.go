// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/attune-hpc/attune/internal/archive"
)

const (
	// maxSections bounds the categories that are shown with their distributions: those
	// whose tasks ran longest in all. The others have a line in the table.
	maxSections = 20
	// maxRows bounds that table.
	maxRows = 500
	// maxOutliers bounds the tasks of a category that are named, by each of its fields.
	maxOutliers = 5
	// maxPoints bounds a time line. Of the tasks between two points, the least and the most
	// are shown: no peak is hidden.
	maxPoints = 240
)

// Report is what an archive says of a set of tasks.
type Report struct {
	Made     time.Time
	Archive  string
	Tasks    int
	Failed   int
	First    time.Time
	Last     time.Time
	Wall     float64 // seconds, of all tasks
	CPU      float64 // seconds, of those that it is known of
	Sections []*Section
	Rows     []archive.Category // all categories, those first that ran longest
	MoreRows int                // categories that have no row
}

// Section is about one category.
type Section struct {
	archive.Category
	CPU      float64
	Asked    []Use
	Charts   []Chart
	Outliers []Outlier
	Next     *archive.Estimate // nil: nothing can be said
}

// Use is how much was used of what was asked for, in units times seconds; time: seconds.
type Use struct {
	Name        string
	Asked, Used float64
	Tasks       int
}

// Share is the used part, 0 to 1 or more.
func (u Use) Share() float64 { return u.Used / u.Asked }

// Chart is a field of a category's tasks.
type Chart struct {
	archive.Distribution
	Title    string
	Over     []Point
	From, To time.Time // when the first task and the last one ended
	Asked    float64   // what was asked for last; 0: not known, or the field is not asked for
}

// Point is a task on a time line.
type Point struct {
	End    time.Time
	Value  float64
	Failed bool
}

// Outlier is a task that is unlike the others of its category in a field.
type Outlier struct {
	ID     string
	Field  string
	Title  string
	Value  float64
	Median float64
	End    time.Time
}

// memory is the field that stands for archive.Summary.Memory.
const memory = "memory_bytes"

// fields are those that are shown of a category, if its tasks have them.
// Tasks that are unlike the others are looked for in those that go with no other one.
var fields = []struct {
	name, title, asked string
	outliers           bool
}{
	{memory, "Memory", "asked.memory_bytes", true},
	{"wall_seconds", "Time", "asked.wall_seconds", true},
	{"cores_average", "Cores used", "asked.cores", true},
	{"cpu_seconds", "CPU time", "", false},
	{"io.read_bytes", "Read", "", false},
	{"io.written_bytes", "Written", "", false},
	{"disk.bytes_peak", "Disk", "asked.disk_bytes", true},
}

// value is what a task has in one of them.
func value(t *archive.Summary, field string) (float64, bool) {
	if field == memory {
		return t.Memory()
	}
	v, known := t.Numbers[field]
	return v, known
}

// Make makes the report of the tasks of a filter.
func Make(ctx context.Context, s *archive.Store, f archive.Filter, now time.Time) (*Report, error) {
	categories, err := s.Categories(ctx, f)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(categories, func(a, b archive.Category) int { return cmp.Compare(b.WallSeconds, a.WallSeconds) })
	r := &Report{Made: now, Archive: s.Path(), Rows: categories[:min(len(categories), maxRows)]}
	r.MoreRows = len(categories) - len(r.Rows)
	folds := make(map[string]*fold)
	for _, c := range categories[:min(len(categories), maxSections)] {
		folds[c.ID] = newFold(c)
	}
	err = s.Each(ctx, f, func(t archive.Summary) error {
		r.add(&t)
		if into := folds[t.Category]; into != nil {
			into.add(&t)
		}
		return ctx.Err()
	})
	if err != nil {
		return nil, err
	}
	for _, c := range categories[:len(folds)] {
		section := folds[c.ID].section()
		section.Next, err = s.Estimate(ctx, c.ID, 0)
		if err != nil && !errors.Is(err, archive.ErrUnknown) {
			return nil, err
		}
		r.Sections = append(r.Sections, section)
	}
	return r, nil
}

func (r *Report) add(t *archive.Summary) {
	r.Tasks++
	if !t.Succeeded() {
		r.Failed++
	}
	if r.Last.IsZero() { // the latest comes first
		r.Last = t.End
	}
	r.First = t.End
	r.Wall += t.Numbers["wall_seconds"]
	r.CPU += t.Numbers["cpu_seconds"]
}
