// SPDX-License-Identifier: Apache-2.0

package action

import (
	"errors"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/controller/actuate/actuatetest"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

func buildLibrary(t *testing.T) string {
	t.Helper()
	return targets.BuildWith(t, "gcc", "library.so", "../testdata/library.c", "-shared", "-fPIC")
}

// environment is a variable of the program's, as its own getenv has it.
func (i *tuned) environment(t *testing.T) string {
	t.Helper()
	got := i.Apply(t, "getenv", actuatetest.CallFunction(&attunev1.CallFunction{
		Object: "libc.so.6", Symbol: "getenv", Arguments: []*attunev1.Value{access.TextValue("ATTUNE_TEST_LIBRARY")},
	}))
	i.Actuator.Undo(t.Context(), "getenv")
	if got.GetNewValue().GetUnsigned() == 0 {
		return ""
	}
	text := make([]byte, 6)
	if err := targets.ReadMemory(i.PID, got.GetNewValue().GetUnsigned(), text); err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestLoadLibrary(t *testing.T) {
	i, library := startTuned(t), buildLibrary(t)
	got := i.Apply(t, "load", actuatetest.Load(&attunev1.LoadLibrary{Path: library, Symbol: "from_library", CloseOnUndo: true}))
	if got.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED || got.GetNewValue().GetUnsigned() == 0 {
		t.Fatal(got)
	}
	if env := i.environment(t); env != "loaded" {
		t.Errorf("the constructor did not run: %q", env)
	}
	called := i.Apply(t, "call", actuatetest.CallFunction(&attunev1.CallFunction{Object: "library.so", Symbol: "from_library"}))
	if called.GetNewValue().GetUnsigned() != 4711 {
		t.Errorf("call into it: %v", called)
	}
	if undone := i.Actuator.Undo(t.Context(), "load"); undone.GetOutcome() != attunev1.Outcome_OUTCOME_UNDONE {
		t.Error(undone)
	}
	if _, there := mapped(i.Process, library); there || i.environment(t) != "closed" {
		t.Errorf("it is still there, or its destructor did not run")
	}
}

// A library that a killed controller has loaded is closed by its journal.
func TestLoadedLibraryInJournal(t *testing.T) {
	i, library := startTuned(t), buildLibrary(t)
	for _, row := range []struct {
		close bool
		want  error
	}{{true, nil}, {false, ErrLibraryStays}} {
		if got := i.Apply(t, "load", actuatetest.Load(&attunev1.LoadLibrary{Path: library, CloseOnUndo: row.close})); got.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED {
			t.Fatal(got)
		}
		if err := i.TakeBackLeft(t, "load"); !errors.Is(err, row.want) {
			t.Errorf("close %v: %v, want %v", row.close, err, row.want)
		}
		if _, there := mapped(i.Process, library); there == row.close {
			t.Errorf("close %v: mapped %v", row.close, there)
		}
		i.Actuator.Forget(i.Process)
	}
}

func TestLoadRefusals(t *testing.T) {
	i, library := startTuned(t), buildLibrary(t)
	for _, row := range []struct {
		name    string
		load    *attunev1.LoadLibrary
		outcome attunev1.Outcome
		reason  string
	}{
		{"relative", &attunev1.LoadLibrary{Path: "library.so"}, attunev1.Outcome_OUTCOME_REFUSED, "absolute"},
		{"none", &attunev1.LoadLibrary{Path: "/nothing.so"}, attunev1.Outcome_OUTCOME_REFUSED, "no such file"},
		{"no ELF file", &attunev1.LoadLibrary{Path: "/etc/passwd"}, attunev1.Outcome_OUTCOME_REFUSED, "ELF"},
		{"lacks the symbol", &attunev1.LoadLibrary{Path: library, Symbol: "from_nowhere"}, attunev1.Outcome_OUTCOME_REFUSED, "no such symbol"},
		{"a program", &attunev1.LoadLibrary{Path: "/bin/true"}, attunev1.Outcome_OUTCOME_FAILED, "cannot dynamically load"},
	} {
		got := i.Apply(t, "c", actuatetest.Load(row.load))
		if got.GetOutcome() != row.outcome || !strings.Contains(got.GetReason(), row.reason) {
			t.Errorf("%s: %v, want %v with %q", row.name, got, row.outcome, row.reason)
		}
	}
}
