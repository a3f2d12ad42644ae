// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/account"
)

// smallDocument is the bound of these tests: newTask has room in it, and some tens of processes.
const smallDocument = 4096

func mustOpenBounded(t *testing.T, path string, document int64) *Store {
	t.Helper()
	s, err := open(t.Context(), path, options{wait: time.Second, limit: maxBytes, migrations: migrations, document: document})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// newLarge is a task of a thousand processes, the later ones of which took more, but for the last.
func newLarge(n int) *Task {
	task := newTask("large", n)
	for pid := range 1000 {
		task.Account.Tree = append(task.Account.Tree, account.Process{PID: pid + 1, Name: "p", CPUSeconds: new(float64(pid))})
	}
	task.Account.Tree[999].CPUSeconds = nil
	return task
}

// TestLargeTask: of a task with more processes than a document has room for, those are kept that took
// most, with the command, and what is missing is said; it is the same task when it is added again. There
// is little room left.
func TestLargeTask(t *testing.T) {
	s := mustOpenBounded(t, filepath.Join(t.TempDir(), "archive.db"), smallDocument)
	added := mustAdd(t, s, newLarge(1), newTask("small", 2))
	again := mustAdd(t, s, newLarge(1))
	if added.New != 2 || again.Known != 1 {
		t.Errorf("added %+v, again %+v", added, again)
	}
	read := 0
	if err := s.EachTask(t.Context(), Filter{Category: "large"}, func(_ string, task *Task) error {
		read++
		tree := task.Account.Tree
		if len(tree) < 10 || tree[0].PID != 1 || tree[1].PID < 900 || tree[len(tree)-1].PID != 999 || tree[1].PID >= tree[2].PID {
			t.Errorf("%d processes are kept: %+v", len(tree), tree)
		}
		if why := task.Account.Missing["tree"]; !strings.Contains(why, "processes that took less are left out") {
			t.Errorf("of the tree is missing: %q", why)
		}
		return nil
	}); err != nil || read != 1 {
		t.Errorf("read %d, %v", read, err)
	}
	if kept, err := encodeWithin(newLarge(1), smallDocument); err != nil || len(kept.text) < smallDocument*4/5 {
		t.Errorf("its document has %d bytes, %v", len(kept.text), err)
	}
	huge := newTask("huge", 3)
	huge.Job = strings.Repeat("x", smallDocument)
	if _, err := s.Add(t.Context(), huge); !errors.Is(err, ErrInvalid) {
		t.Errorf("a task that is too large without its processes: %v", err)
	}
}

// TestUnreadableTask: one that cannot be read is left out, which is said, and keeps nobody from the others.
func TestUnreadableTask(t *testing.T) {
	path := filepath.Join(t.TempDir(), "archive.db")
	large := newLarge(2)
	large.Account.Exit = account.Exit{Type: account.ExitLimits, Limits: []string{"memory.resident_peak_bytes: 2e12 > 1e12"}}
	mustAdd(t, mustOpen(t, path), newTask("large", 1), large, newTask("large", 3))
	s := mustOpenBounded(t, path, smallDocument)
	read := 0
	err := s.EachTask(t.Context(), Filter{}, func(string, *Task) error {
		read++
		return nil
	})
	if read != 2 || !errors.Is(err, ErrUnreadable) {
		t.Errorf("read %d, want 2, and %v", read, err)
	}
	e, err := s.Estimate(t.Context(), "large", 0)
	if err != nil || !strings.Contains(e.MemoryBytes.Reason, "without 1 task that ended at a limit") {
		t.Errorf("estimate %+v, %v", e, err)
	}
}
