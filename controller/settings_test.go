// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

func named(id string, process uint64, name string, value int64) *attunev1.Change {
	return &attunev1.Change{Id: id, Knob: name, Process: process, Action: &attunev1.Action{
		Kind: &attunev1.Action_Setting{Setting: &attunev1.NamedSetting{
			Name: name, Value: &attunev1.Value{Kind: &attunev1.Value_Integer{Integer: value}},
		}},
	}}
}

// Libraries of Debian, changed by calls at safe points: the library itself
// says what it goes by, during the change and afterwards.
func TestSettingsByCalls(t *testing.T) {
	tests := []struct {
		name, library, debian string
		setting               string
		value                 int64
		question              string
		before, during        string
	}{
		{"libgomp threads", "libgomp.so.1", "libgomp1", "omp.num_threads", 5, "team", "2", "5"},
		{"libgomp dynamic", "libgomp.so.1", "libgomp1", "omp.dynamic", 1, "omp_get_dynamic", "0", "1"},
		{"libomp threads", "libomp.so.5", "libomp5-14", "omp.num_threads", 3, "team", "2", "3"},
		{"libomp blocktime", "libomp.so.5", "libomp5-14", "kmp.blocktime", 7, "kmp_get_blocktime", "200", "7"},
		{"jemalloc new arenas", "libjemalloc.so.2", "libjemalloc2", "jemalloc.dirty_decay_ms", 250, "mallctl arenas.dirty_decay_ms", "10000", "250"},
		{"jemalloc arena", "libjemalloc.so.2", "libjemalloc2", "jemalloc.dirty_decay_ms", -1, "mallctl arena.0.dirty_decay_ms", "10000", "-1"},
		{"jemalloc muzzy", "libjemalloc.so.2", "libjemalloc2", "jemalloc.muzzy_decay_ms", 4, "mallctl arena.0.muzzy_decay_ms", "0", "4"},
		{"jemalloc thread", "libjemalloc.so.2", "libjemalloc2", "jemalloc.background_thread", 1, "mallctl background_thread", "0", "1"},
		{"tcmalloc cache", "libtcmalloc_minimal.so.4", "libtcmalloc-minimal4", "tcmalloc.max_total_thread_cache_bytes", 64 << 20,
			"property tcmalloc.max_total_thread_cache_bytes", "33554432", "67108864"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			targets.NeedLibrary(t, tt.library, tt.debian)
			program := targets.Build(t, "testdata/settings.c", "-Wl,--no-as-needed", "-l:"+tt.library)
			b := start(t)
			defer b.stop(t)
			target := targets.Start(t, program, append(b.controller.Environment(), "OMP_NUM_THREADS=2")...)
			process := b.withDMLib(t, target.PID)
			says := func(when, want string) {
				t.Helper()
				if got := target.Ask(t, tt.question); got != want {
					t.Errorf("%s is %s %s, want %s", tt.question, got, when, want)
				}
			}
			says("before", tt.before)
			r := b.apply(t, named("c", process.GetHandle(), tt.setting, tt.value))[0]
			if r.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED || r.GetNewValue().GetInteger() != tt.value || !strings.Contains(r.GetSafePoint(), "hook") {
				t.Fatalf("apply: %v", r)
			}
			says("during the change", tt.during)
			undone := b.ask(t, &attunev1.ManageResponse{RequestId: "undo", Request: &attunev1.ManageResponse_Undo{
				Undo: &attunev1.UndoChanges{ChangeIds: []string{"c"}},
			}})
			if len(undone) != 1 || undone[0].GetOutcome() != attunev1.Outcome_OUTCOME_UNDONE {
				t.Errorf("undo: %v", undone)
			}
			says("afterwards", tt.before)
		})
	}
}

// TestArenasMadeMeanwhile: an arena that begins during a change begins with the new value, and
// goes back with the others.
func TestArenasMadeMeanwhile(t *testing.T) {
	targets.NeedLibrary(t, "libjemalloc.so.2", "libjemalloc2")
	program := targets.Build(t, "testdata/settings.c", "-Wl,--no-as-needed", "-l:libjemalloc.so.2")
	b := start(t)
	defer b.stop(t)
	target := targets.Start(t, program, b.controller.Environment()...)
	process := b.withDMLib(t, target.PID)
	if r := b.apply(t, named("c", process.GetHandle(), "jemalloc.dirty_decay_ms", 250))[0]; r.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED {
		t.Fatalf("apply: %v", r)
	}
	question := "mallctl arena." + target.Ask(t, "mallctl arenas.create") + ".dirty_decay_ms"
	if got := target.Ask(t, question); got != "250" {
		t.Errorf("%s is %s during the change, want 250", question, got)
	}
	undone := b.ask(t, &attunev1.ManageResponse{RequestId: "undo", Request: &attunev1.ManageResponse_Undo{
		Undo: &attunev1.UndoChanges{ChangeIds: []string{"c"}},
	}})
	if len(undone) != 1 || undone[0].GetOutcome() != attunev1.Outcome_OUTCOME_UNDONE {
		t.Errorf("undo: %v", undone)
	}
	if got := target.Ask(t, question); got != "10000" {
		t.Errorf("%s is %s afterwards, want 10000", question, got)
	}
}

// What a process does not have is refused, with the reason.
func TestSettingsOfAbsentLibraries(t *testing.T) {
	program := targets.Build(t, "testdata/settings.c")
	b := start(t)
	defer b.stop(t)
	target := targets.Start(t, program, b.controller.Environment()...)
	process := b.withDMLib(t, target.PID)
	for _, name := range []string{
		"omp.num_threads", "kmp.blocktime", "jemalloc.dirty_decay_ms", "tcmalloc.aggressive_memory_decommit",
		"gomp.spin_count", "python.gc.threshold0",
	} {
		r := b.apply(t, named("c", process.GetHandle(), name, 1))[0]
		if r.GetOutcome() != attunev1.Outcome_OUTCOME_REFUSED || !strings.Contains(r.GetReason(), "does not use it") {
			t.Errorf("%s: %v", name, r)
		}
	}
}
