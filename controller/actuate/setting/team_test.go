// SPDX-License-Identifier: Apache-2.0

package setting

import (
	"strings"
	"testing"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/actuatetest"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// A program that divides work by the numbers of its threads is told from one that
// takes any number of them, however it was compiled.
func TestDividesByNumber(t *testing.T) {
	for _, flags := range [][]string{{"-O0"}, {"-O2"}, {"-O2", "-fno-plt", "-Wl,-z,now"}, {"-O2", "-fcf-protection=full", "-no-pie"}} {
		for _, tt := range []struct {
			way  string
			want bool
		}{
			{"STATIC", false}, {"DYNAMIC", false}, {"NOBODY", false}, {"SCRATCH", false}, {"HELPER", false},
			{"BY_NUMBER", true}, {"BY_NUMBER_BELOW", true},
		} {
			t.Run(tt.way+strings.Join(flags, ""), func(t *testing.T) {
				// Both helpers are in each program, which calls one of them at most.
				program := targets.Build(t, "../testdata/parts.c", append(flags, "-fopenmp", "-D"+tt.way,
					"-ffunction-sections", "-Wl,--gc-sections")...)
				file, err := objfile.Open(program)
				if err != nil {
					t.Fatal(err)
				}
				defer file.Close()
				if err := dividesByNumber(file); (err != nil) != tt.want {
					t.Errorf("%v, want a reason: %v", err, tt.want)
				}
			})
		}
	}
}

// The number of threads of such a program is not changed, each time it is asked
// for, with the reason.
func TestNumberOfThreadsIsRefused(t *testing.T) {
	target := targets.Start(t, targets.Build(t, "../testdata/parts.c", "-O2", "-fopenmp", "-DBY_NUMBER", "-DWAITS"))
	a := actuate.New(actuate.Options{Journal: actuatetest.MustJournal(t, t.TempDir()), Kinds: Kinds(mustHidden(t))})
	for range 2 {
		r := a.Apply(t.Context(), actuatetest.MustProcess(t, target.PID), &attunev1.Change{Id: "c", Action: actuatetest.Setting("omp.num_threads", 1)})
		if r.GetOutcome() != attunev1.Outcome_OUTCOME_REFUSED || !strings.Contains(r.GetReason(), "omp_get_thread_num") {
			t.Errorf("%v, want it refused because of omp_get_thread_num", r)
		}
	}
}
