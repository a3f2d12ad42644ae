// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/testing/patience"
)

// conform runs what holds for an archive at any place; place makes an empty one.
func conform(t *testing.T, place func(testing.TB) string) {
	for name, test := range map[string]func(*testing.T, func(testing.TB) string){
		"what is added is there": testWhatIsAddedIsThere, "find": testFind, "all or none": testAllOrNone, "migration": testMigration,
		"several writers": testSeveralWriters, "the same by several": testTheSameBySeveral, "odd texts": testOddTexts, "estimate": testEstimate,
	} {
		t.Run(name, func(t *testing.T) { test(t, place) })
	}
}

func TestFile(t *testing.T) {
	conform(t, func(t testing.TB) string { return filepath.Join(t.TempDir(), "archive.db") })
}

// testTheSameBySeveral: who adds the same tasks at the same time in another order waits
// for nobody who waits for them, and each task is there once.
func testTheSameBySeveral(t *testing.T, place func(testing.TB) string) {
	path := place(t)
	mustOpen(t, path)
	const writers, many = 4, 60
	var done sync.WaitGroup
	var counts [writers]Added
	for w := range writers {
		done.Go(func() {
			var tasks []*Task
			for n := range many {
				tasks = append(tasks, newTask("a", (n*(2*w+1)+w)%many))
			}
			s, err := Open(context.Background(), path)
			if err == nil {
				counts[w], err = s.Add(context.Background(), tasks...)
				err = errors.Join(err, s.Close())
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	done.Wait()
	var sum Added
	for _, c := range counts {
		sum.New, sum.Known = sum.New+c.New, sum.Known+c.Known
	}
	if sum.New+sum.Known != writers*many {
		t.Errorf("%+v of %d", sum, writers*many)
	}
	if all, err := mustOpen(t, path).List(t.Context(), Filter{}); err != nil || len(all) != sum.New {
		t.Errorf("%d tasks, %v; want %d", len(all), err, sum.New)
	}
}

// testOddTexts: what a command line or an import may have, and twice in one call.
func testOddTexts(t *testing.T, place func(testing.TB) string) {
	s := mustOpen(t, place(t))
	task := newTask("odd", 1)
	task.Name, task.Job = "null\x00 and \xff", "'; --?$1"
	if added := mustAdd(t, s, task, task); added != (Added{New: 1, Known: 1}) {
		t.Errorf("%+v", added)
	}
	all, err := s.List(t.Context(), Filter{})
	if err != nil || len(all) != 1 || all[0].Name != "null\uFFFD and \uFFFD" || all[0].Job != task.Job {
		t.Errorf("%+v, %v", all, err)
	}
	if _, err := s.Task(t.Context(), all[0].ID); err != nil {
		t.Error(err)
	}
}

// testEstimate: an estimate is made of the latest tasks.
func testEstimate(t *testing.T, place func(testing.TB) string) {
	s := mustOpen(t, place(t))
	var tasks []*Task
	for n := range 40 {
		tasks = append(tasks, newTask("align", n))
	}
	mustAdd(t, s, tasks...)
	e, err := s.Estimate(t.Context(), "align", 0)
	if err != nil || e.Tasks != 40 || e.MemoryBytes == nil || e.MemoryBytes.Value < 40<<20 {
		t.Errorf("%+v, %v", e, err)
	}
}

func testWhatIsAddedIsThere(t *testing.T, place func(testing.TB) string) {
	path := place(t)
	s := mustOpen(t, path)
	var tasks []*Task
	for n := range 20 {
		tasks = append(tasks, newTask("align", n))
	}
	tasks[3].Account.Exit = account.Exit{Type: account.ExitNormal, Code: new(1)}
	tasks[4].Account.Exit = account.Exit{Type: account.ExitSignal, Signal: "SIGKILL"}
	tasks[5].Name, tasks[5].Source = "other", "slurm"
	tasks[6].Job = "a job"
	if added := mustAdd(t, s, tasks...); added != (Added{New: 20}) {
		t.Errorf("added %+v", added)
	}
	if added := mustAdd(t, s, newTask("align", 0), newTask("sort", 0)); added != (Added{New: 1, Known: 1}) {
		t.Errorf("added %+v, want one known", added)
	}
	for _, tt := range []struct {
		name string
		f    Filter
		want int
	}{
		{"all", Filter{}, 21},
		{"by name", Filter{Category: "align"}, 19},
		{"by another name", Filter{Category: "other"}, 1},
		{"none", Filter{Category: "alig"}, 0},
		{"failed", Filter{Failed: true}, 2},
		{"succeeded", Filter{Succeeded: true, Category: "align"}, 17},
		{"of a source", Filter{Source: "slurm"}, 1},
		{"since", Filter{Since: epoch.Add(15 * time.Minute)}, 5},
		{"of a job", Filter{Job: "a job"}, 1},
		{"the latest", Filter{Limit: 3}, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := s.List(t.Context(), tt.f)
			if err != nil || len(got) != tt.want {
				t.Errorf("%d tasks, %v; want %d", len(got), err, tt.want)
			}
		})
	}
	latest, err := s.List(t.Context(), Filter{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	whole, err := s.Task(t.Context(), latest[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(tasks[19], whole); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if memory, known := latest[0].Memory(); !known || memory != 20<<20 || !latest[0].Succeeded() {
		t.Errorf("memory %v, %t of %+v", memory, known, latest[0])
	}
	categories, err := s.Categories(t.Context(), Filter{})
	if err != nil || len(categories) != 2 || categories[0].Tasks != 20 || categories[0].Failed != 2 || categories[0].Pattern != "align -t # *.bam" {
		t.Errorf("%+v, %v", categories, err)
	}
	byID, err := s.List(t.Context(), Filter{Category: categories[0].ID[:6]})
	if err != nil || len(byID) != 20 {
		t.Errorf("%d tasks of category %s, %v", len(byID), categories[0].ID, err)
	}
	values, err := s.Values(t.Context(), Filter{Category: "align"}, "memory.resident_peak_bytes")
	if err != nil || len(values) != 19 || values[0] != 1<<20 || values[18] != 20<<20 {
		t.Errorf("values %v, %v", values, err)
	}
	if _, err := s.Values(t.Context(), Filter{}, "name"); !errors.Is(err, ErrUnknown) {
		t.Errorf("a field that is none: %v", err)
	}
}

func testFind(t *testing.T, place func(testing.TB) string) {
	s := mustOpen(t, place(t))
	mustAdd(t, s, newTask("a", 1), newTask("b", 2))
	all, err := s.List(t.Context(), Filter{})
	if err != nil {
		t.Fatal(err)
	}
	if id, err := s.Find(t.Context(), all[0].ID[:8]); id != all[0].ID || err != nil {
		t.Errorf("%s, %v; want %s", id, err, all[0].ID)
	}
	if _, err := s.Find(t.Context(), ""); !errors.Is(err, ErrAmbiguous) {
		t.Errorf("of several: %v", err)
	}
	if _, err := s.Find(t.Context(), "nothing"); !errors.Is(err, ErrUnknown) {
		t.Errorf("of none: %v", err)
	}
	if _, err := s.Task(t.Context(), "nothing"); !errors.Is(err, ErrUnknown) {
		t.Errorf("of none: %v", err)
	}
}

// One that cannot be kept keeps all others of the same call out.
func testAllOrNone(t *testing.T, place func(testing.TB) string) {
	for _, tt := range []struct {
		name   string
		change func(*Task)
	}{
		{"layout", func(t *Task) { t.Schema = "attune.task/9" }},
		{"layout of the account", func(t *Task) { t.Account.Schema = "" }},
		{"no command", func(t *Task) { t.Account.Command = nil }},
		{"no end", func(t *Task) { t.Account.End = time.Time{} }},
		{"ended before it began", func(t *Task) { t.Account.End = t.Account.Start.Add(-1) }},
		{"below nothing", func(t *Task) { t.Account.WallSeconds = -1 }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := mustOpen(t, place(t))
			bad := newTask("a", 2)
			tt.change(bad)
			if _, err := s.Add(t.Context(), newTask("a", 1), bad); !errors.Is(err, ErrInvalid) {
				t.Errorf("error %v", err)
			}
			if all, err := s.List(t.Context(), Filter{}); len(all) != 0 || err != nil {
				t.Errorf("%d tasks are there, %v", len(all), err)
			}
		})
	}
}

// testMigration: an archive of an older layout becomes one of the newer, with its tasks,
// whoever opens it first of several.
func testMigration(t *testing.T, place func(testing.TB) string) {
	path := place(t)
	s := mustOpen(t, path)
	mustAdd(t, s, newTask("a", 1))
	newer := options{wait: patience.Limit, limit: maxBytes, migrations: append(migrations[:len(migrations):len(migrations)], "ALTER TABLE task ADD COLUMN gpu_seconds DOUBLE PRECISION")}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			s, err := open(context.Background(), path, newer)
			if err != nil {
				t.Error(err)
				return
			}
			var n int
			if err := s.db.QueryRow("SELECT count(*) FROM task WHERE gpu_seconds IS NULL").Scan(&n); err != nil || n != 1 {
				t.Errorf("%d tasks, %v", n, err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// testSeveralWriters: each has an archive of its own open on the same file, as processes
// have.
func testSeveralWriters(t *testing.T, place func(testing.TB) string) {
	path := place(t)
	const writers, each = 4, 25
	var done sync.WaitGroup
	for w := range writers {
		done.Go(func() {
			for n := range each {
				if err := func() error {
					s, err := Open(context.Background(), path)
					if err != nil {
						return err
					}
					_, err = s.Add(context.Background(), newTask(fmt.Sprintf("w%d", w), n))
					return errors.Join(err, s.Close())
				}(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done.Wait()
	all, err := mustOpen(t, path).List(t.Context(), Filter{})
	if err != nil || len(all) != writers*each {
		t.Errorf("%d tasks, %v; want %d", len(all), err, writers*each)
	}
}
