// SPDX-License-Identifier: Apache-2.0

//go:build !vm

// There is no Go toolchain in the virtual machines, and nothing here depends on the
// kernel but writing to memory, which other tests do there.

package setting

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/actuatetest"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// mustGo builds a program of this toolchain.
func mustGo(t *testing.T, flags ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "collected")
	build := exec.Command("go", append(append([]string{"build"}, flags...), "-o", path, "../testdata/collected/main.go")...)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return path
}

// A program says itself what its collector goes by, with symbols of its data and
// without.
func TestGoPercent(t *testing.T) {
	tests := []struct {
		name  string
		flags []string
		env   string
	}{
		{"symbols", nil, "GOGC="},
		{"stripped", []string{"-ldflags=-s -w"}, "GOGC="},
		{"stripped, position-independent", []string{"-buildmode=pie", "-ldflags=-s -w"}, "GOGC=75"},
		{"stripped, memory limit", []string{"-ldflags=-s -w"}, "GOMEMLIMIT=1GiB"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			target := targets.Start(t, mustGo(t, tt.flags...), tt.env)
			a := actuate.New(actuate.Options{Journal: actuatetest.MustJournal(t, t.TempDir()), Kinds: Kinds(nil)})
			process := actuatetest.MustProcess(t, target.PID)
			before := target.Ask(t, "?")
			r := a.Apply(t.Context(), process, &attunev1.Change{Id: "c", Action: actuatetest.Setting("go.gc.percent", 800)})
			if r.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED {
				t.Fatalf("apply: %v", r)
			}
			if got, want := target.Ask(t, "?"), "800 33554432"; got != want { // 8 times 4 MiB at least
				t.Errorf("percentage and goal are %s, want %s", got, want)
			}
			if undo := a.Undo(t.Context(), "c"); undo.GetOutcome() != attunev1.Outcome_OUTCOME_UNDONE {
				t.Errorf("undo: %v", undo)
			}
			if got := target.Ask(t, "?"); got != before {
				t.Errorf("percentage and goal are %s afterwards, want %s", got, before)
			}
		})
	}
}

// What is no Go program, or collects nothing, is left alone; what the program has
// set meanwhile stays.
func TestGoPercentRefuses(t *testing.T) {
	a := actuate.New(actuate.Options{Journal: actuatetest.MustJournal(t, t.TempDir()), Kinds: Kinds(nil)})
	apply := func(target *targets.Target) *attunev1.ActionResult {
		return a.Apply(t.Context(), actuatetest.MustProcess(t, target.PID), &attunev1.Change{Id: "c", Action: actuatetest.Setting("go.gc.percent", 400)})
	}
	program := mustGo(t, "-ldflags=-s -w")
	off := targets.Start(t, program, "GOGC=off")
	if r := apply(off); r.GetOutcome() != attunev1.Outcome_OUTCOME_REFUSED {
		t.Errorf("GOGC=off: %v", r)
	}
	if r := apply(targets.Start(t, targets.Build(t, "../testdata/variables.c"))); r.GetOutcome() != attunev1.Outcome_OUTCOME_REFUSED {
		t.Errorf("a C program: %v", r)
	}
	target := targets.Start(t, program, "GOGC=")
	if r := apply(target); r.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED {
		t.Fatalf("apply: %v", r)
	}
	want := target.Ask(t, "50") // its own change
	a.Undo(t.Context(), "c")
	if got := target.Ask(t, "?"); got != want {
		t.Errorf("percentage and goal are %s afterwards, the program had set %s", got, want)
	}
}
