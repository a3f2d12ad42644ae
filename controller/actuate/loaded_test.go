// SPDX-License-Identifier: Apache-2.0

package actuate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/actuatetest"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// library is one that a program is to load.
type library struct {
	*actuatetest.Rig
	path string
}

func mustLibrary(t *testing.T) library {
	t.Helper()
	return library{
		actuatetest.StartTuned(t, "testdata", all),
		targets.BuildWith(t, "gcc", "library.so", "testdata/library.c", "-shared", "-fPIC"),
	}
}

// load has the program load the library, which undoing closes.
func (l library) load(t *testing.T, id string) *attunev1.ActionResult {
	t.Helper()
	return l.Apply(t, id, actuatetest.Load(&attunev1.LoadLibrary{Path: l.path, CloseOnUndo: true}))
}

func (l library) mapped(t *testing.T) bool {
	t.Helper()
	return strings.Contains(string(files.Read(t, fmt.Sprintf("/proc/%d/maps", l.PID))), l.path)
}

// failAt has no line of that op, but for the first ones, be written any more.
func (l library) failAt(op string, first int) {
	calls := 0
	actuate.SetStep(l.Kept.Journal, func(now string) {
		if now != op {
			return
		}
		if calls++; calls > 2*first { // it is called before and after each line
			actuate.LetGo(l.Kept.Journal)
		}
	})
}

// The loader is asked to close a library once, also where the end of the change cannot be written
// down: asked again, it would take what the program has opened itself.
func TestLibraryIsClosedOnce(t *testing.T) {
	tests := map[string]func(t *testing.T, l library) error{
		"in force": func(t *testing.T, l library) error {
			return actuate.Left(l.Actuator, l.Actuator.Undo(t.Context(), "load"))
		},
		"by the journal": func(t *testing.T, l library) error { return l.TakeBackLeft(t, "load") },
	}
	for name, undo := range tests {
		t.Run(name, func(t *testing.T) {
			l := mustLibrary(t)
			for _, id := range []string{"of the program", "load"} {
				if got := l.load(t, id); got.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED {
					t.Fatal(got)
				}
			}
			l.failAt("end", 0)
			for range 2 {
				if err := undo(t, l); err == nil {
					t.Error("its end is written down")
				}
				if !l.mapped(t) {
					t.Fatal("what the program opened is closed")
				}
			}
		})
	}
}

// A library is not closed before the journal knows that, but later: it stays in force.
func TestLibraryIsNotClosedUnnoted(t *testing.T) {
	tests := []struct {
		name  string
		begun int // lines, until there is no room for one
	}{
		{"loaded", 1},
		{"undone", 2},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			l := mustLibrary(t)
			l.failAt("begin", test.begun)
			l.load(t, "load")
			l.Actuator.Undo(t.Context(), "load")
			if !l.mapped(t) || len(l.Actuator.Applied()) != 1 {
				t.Errorf("mapped: %v, in force: %v", l.mapped(t), l.Actuator.Applied())
			}
		})
	}
}
