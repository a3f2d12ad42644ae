// SPDX-License-Identifier: Apache-2.0

package setting

import (
	"strings"
	"testing"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/controller/actuate/actuatetest"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Without DMLib a stopped thread makes the calls; the library itself says what
// it goes by, during the change, after it was undone, and after a controller
// that died was undone from its journal.
func TestSettingsByStoppedThread(t *testing.T) {
	for _, row := range []struct {
		name, library, debian string
		setting               string
		value                 int64
		question              string
		before, during        string
	}{
		{"libgomp dynamic", "libgomp.so.1", "libgomp1", "omp.dynamic", 1, "omp_get_dynamic", "0", "1"},
		{"libomp threads", "libomp.so.5", "libomp5-14", "omp.num_threads", 3, "team", "2", "3"},
		{"libomp blocktime", "libomp.so.5", "libomp5-14", "kmp.blocktime", 7, "kmp_get_blocktime", "200", "7"},
		{"jemalloc arena", "libjemalloc.so.2", "libjemalloc2", "jemalloc.dirty_decay_ms", -1, "mallctl arena.0.dirty_decay_ms", "10000", "-1"},
		{"jemalloc thread", "libjemalloc.so.2", "libjemalloc2", "jemalloc.background_thread", 1, "mallctl background_thread", "0", "1"},
		{"tcmalloc cache", "libtcmalloc_minimal.so.4", "libtcmalloc-minimal4", "tcmalloc.max_total_thread_cache_bytes", 64 << 20,
			"property tcmalloc.max_total_thread_cache_bytes", "33554432", "67108864"},
	} {
		t.Run(row.name, func(t *testing.T) {
			targets.NeedLibrary(t, row.library, row.debian)
			target := targets.Start(t, targets.Build(t, "../../testdata/settings.c", "-Wl,--no-as-needed", "-l:"+row.library), "OMP_NUM_THREADS=2")
			i := actuatetest.NewRig(t, target, Kinds(mustHidden(t)))
			says := func(when, want string) {
				t.Helper()
				if got := target.Ask(t, row.question); got != want {
					t.Errorf("%s is %s %s, want %s", row.question, got, when, want)
				}
			}
			apply := func(id string) {
				t.Helper()
				r := i.Apply(t, id, actuatetest.Setting(row.setting, row.value))
				if r.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED || r.GetNewValue().GetInteger() != row.value || r.GetWay() != string(access.WayStopped) {
					t.Fatalf("apply: %v", r)
				}
				says("during the change", row.during)
			}
			says("before", row.before)
			apply("undone")
			if u := i.Actuator.Undo(t.Context(), "undone"); u.GetOutcome() != attunev1.Outcome_OUTCOME_UNDONE {
				t.Errorf("undo: %v", u)
			}
			says("afterwards", row.before)
			apply("left")
			left, err := Kinds(nil).Changes(i.Dir)
			if err != nil || len(left) != 1 || left[0].Old != row.before || left[0].New != row.during || !strings.Contains(left[0].Where, ".so") {
				t.Errorf("%+v, %v", left, err)
			}
			if err := i.TakeBackLeft(t, "left"); err != nil {
				t.Error(err)
			}
			says("after the controller died", row.before)
		})
	}
}

// What calls have changed they give back in a fork, too.
func TestSettingInFork(t *testing.T) {
	for _, row := range []struct {
		name, library, debian, setting string
		value                          int64
		question, before, during       string
	}{
		{"libgomp dynamic", "libgomp.so.1", "libgomp1", "omp.dynamic", 1, "omp_get_dynamic", "0", "1"},
		{"jemalloc arena", "libjemalloc.so.2", "libjemalloc2", "jemalloc.dirty_decay_ms", -1, "mallctl arena.0.dirty_decay_ms", "10000", "-1"},
	} {
		t.Run(row.name, func(t *testing.T) {
			targets.NeedLibrary(t, row.library, row.debian)
			target := targets.Start(t, targets.Build(t, "../../testdata/settings.c", "-Wl,--no-as-needed", "-l:"+row.library))
			i := actuatetest.NewRig(t, target, Kinds(mustHidden(t)))
			if r := i.Apply(t, "c", actuatetest.Setting(row.setting, row.value)); r.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED {
				t.Fatal(r)
			}
			target.Ask(t, "fork")
			if got := target.Ask(t, row.question); got != row.during {
				t.Fatalf("born with %s, want %s", got, row.during)
			}
			if u := i.Actuator.Undo(t.Context(), "c"); u.GetOutcome() != attunev1.Outcome_OUTCOME_UNDONE {
				t.Errorf("undo: %v", u)
			}
			if got := target.Ask(t, row.question); got != row.before {
				t.Errorf("the fork has %s, want %s", got, row.before)
			}
		})
	}
}

// A hook is waited for where it was asked for, and there is none.
func TestSettingAtAHookOfNobody(t *testing.T) {
	targets.NeedLibrary(t, "libgomp.so.1", "libgomp1")
	target := targets.Start(t, targets.Build(t, "../../testdata/settings.c", "-Wl,--no-as-needed", "-l:libgomp.so.1"))
	a := actuate.New(actuate.Options{Journal: actuatetest.MustJournal(t, t.TempDir()), Kinds: Kinds(nil)})
	r := a.Apply(t.Context(), actuatetest.MustProcess(t, target.PID), &attunev1.Change{
		Id: "c", Action: actuatetest.Setting("omp.dynamic", 1), SafePoint: &attunev1.SafePoint{Kind: attunev1.SafePoint_KIND_NEXT_HOOK},
	})
	if r.GetOutcome() != attunev1.Outcome_OUTCOME_REFUSED || !strings.Contains(r.GetReason(), "needs DMLib") {
		t.Error(r)
	}
}
