// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// mpi is an MPI implementation of Debian's, with a variable that must be equal
// in all ranks, and two values of it.
type mpi struct {
	name, compiler string
	launcher       []string
	variable       string
	value          int64
}

func implementations() []mpi {
	return []mpi{
		{
			name: "MPICH", compiler: "mpicc.mpich", launcher: targets.MPICH(3),
			variable: "MPIR_CVAR_ALLREDUCE_SHORT_MSG_SIZE", value: 77,
		},
		{
			name: "Open MPI", compiler: "mpicc.openmpi",
			launcher: []string{"mpirun.openmpi", "-n", "3", "--allow-run-as-root", "--host", "localhost:4", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"},
			variable: "coll_tuned_allreduce_algorithm", value: 3,
		},
	}
}

func (m mpi) build(t *testing.T) string {
	t.Helper()
	compiler := targets.NeedCommand(t, m.compiler, "mpich libmpich-dev openmpi-bin libopenmpi-dev")
	return targets.BuildWith(t, compiler, "ranks", "testdata/ranks.c")
}

// start runs the job; its lines are those of rank 0.
func (m mpi) start(t *testing.T, b *bench, program string) *targets.Target {
	t.Helper()
	cmd := exec.Command(m.launcher[0], append(m.launcher[1:], program, m.variable)...)
	cmd.Env = append(os.Environ(), b.controller.Environment()...)
	return targets.Launch(t, cmd)
}

// ranksOf waits for the handles of n processes of a program, with DMLib.
func (b *bench) ranksOf(t *testing.T, program string, n int) []uint64 {
	t.Helper()
	ranks := make(map[uint64]bool)
	return event(t, b, "all ranks", func(m *attunev1.PublishRequest) ([]uint64, bool) {
		if p, way := aboutDMLib(m); way.GetAvailable() && p.GetExecutable() == program {
			ranks[p.GetHandle()] = true
		}
		var handles []uint64
		for handle := range ranks {
			handles = append(handles, handle)
		}
		return handles, len(handles) == n
	})
}

func (m mpi) changes(ranks []uint64, value int64) (changes []*attunev1.Change) {
	for i, rank := range ranks {
		change := named("c"+string(rune('0'+i)), rank, "mpi_t."+m.variable, value)
		changes = append(changes, change)
	}
	return changes
}

// A control variable changes in all ranks before the same call of a collective
// operation, and back: the ranks compare it at each call.
func TestControlVariables(t *testing.T) {
	for _, m := range implementations() {
		t.Run(m.name, func(t *testing.T) {
			program := m.build(t)
			b := start(t)
			defer b.stop(t)
			job := m.start(t, b, program)
			defer job.EndWell(t) // the ranks fail where they do not agree at some call
			ranks := b.ranksOf(t, program, 3)
			before := job.Line(t)

			for _, some := range [][]uint64{ranks[:1], ranks[:2]} {
				for i, r := range b.apply(t, m.changes(some, m.value)...) {
					if r.GetOutcome() != attunev1.Outcome_OUTCOME_REFUSED || i == 0 && !strings.Contains(r.GetReason(), "must be the same in all 3") {
						t.Errorf("%d ranks of three, %d: %v", len(some), i, r)
					}
				}
			}
			unknown := mpi{variable: "attune_no_such_variable"}
			for _, r := range b.apply(t, unknown.changes(ranks, m.value)...) {
				if r.GetOutcome() == attunev1.Outcome_OUTCOME_APPLIED || !strings.Contains(r.GetReason(), "no control variable "+unknown.variable) {
					t.Errorf("a variable that there is not: %v", r)
				}
			}
			for round := range 2 {
				var ids []string
				for _, r := range b.apply(t, m.changes(ranks, m.value)...) {
					if r.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED || !strings.Contains(r.GetSafePoint(), "same collective call in 3 ranks") {
						t.Fatalf("round %d: %v", round, r)
					}
					ids = append(ids, r.GetChangeId())
				}
				if now := job.Line(t); now == before {
					t.Errorf("round %d: %s during the change", round, now)
				}
				for _, r := range b.ask(t, &attunev1.ManageResponse{RequestId: "undo", Request: &attunev1.ManageResponse_Undo{
					Undo: &attunev1.UndoChanges{ChangeIds: ids},
				}}) {
					if r.GetOutcome() != attunev1.Outcome_OUTCOME_UNDONE {
						t.Fatalf("round %d, undo: %v", round, r)
					}
				}
				if now := job.Line(t); now != before {
					t.Errorf("round %d: %s afterwards, want %s", round, now, before)
				}
			}
		})
	}
}
