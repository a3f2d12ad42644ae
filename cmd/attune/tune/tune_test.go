// SPDX-License-Identifier: Apache-2.0

package tune

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attune-hpc/attune/controller/actuate/system"
)

func TestTuneArguments(t *testing.T) {
	tests := []struct {
		name     string
		args     []string
		pids     []int
		settings []assignment
		err      string
	}{
		{
			"several", []string{"7", "THREAD.nice=5", "8", "pipe.size@3=1M"}, []int{7, 8},
			[]assignment{{"thread.nice", "5", system.Everywhere, false, 0, false}, {"pipe.size", "1M", 3, false, 0, false}}, "",
		},
		{"value with an equals sign", []string{"7", "socket.tcp_congestion=a=b"}, []int{7}, []assignment{{"socket.tcp_congestion", "a=b", system.Everywhere, false, 0, false}}, ""},
		{"of a library", []string{"7", "Gomp.spin_count=0"}, []int{7}, []assignment{{"gomp.spin_count", "0", system.Everywhere, true, 0, false}}, ""},
		{"with a unit", []string{"7", "glibc.stdio.size@7=64K"}, []int{7}, []assignment{{"glibc.stdio.size@7", "64K", system.Everywhere, true, 65536, false}}, ""},
		{"a word of a library", []string{"7", "glibc.stdio.mode=line"}, []int{7}, []assignment{{"glibc.stdio.mode", "line", system.Everywhere, true, 1, false}}, ""},
		{"of MPI", []string{"7", "MPI_T.Some_limit=64K"}, []int{7}, []assignment{{"mpi_t.Some_limit", "64K", system.Everywhere, false, 0, true}}, ""},
		{"of MPI without a name", []string{"7", "mpi_t.=1"}, nil, nil, `unknown knob "mpi_t."`},
		{"out of bounds", []string{"7", "omp.num_threads=0"}, nil, nil, "outside 1..65536"},
		{"no number", []string{"7", "omp.num_threads=many"}, nil, nil, "whole number"},
		{"nothing", nil, nil, nil, "no process id"},
		{"no process", []string{"thread.nice=5"}, nil, nil, "no process id"},
		{"no setting", []string{"7"}, nil, nil, "nothing to change"},
		{"a word", []string{"seven", "thread.nice=5"}, nil, nil, "neither a process id"},
		{"process 0", []string{"0", "thread.nice=5"}, nil, nil, "is no process id"},
		{"huge process", []string{"99999999999999999999", "thread.nice=5"}, nil, nil, "is no process id"},
		{"unknown knob", []string{"7", "colour=5"}, nil, nil, `unknown knob "colour"`},
		{"a setting without its library", []string{"7", "malloc.trim_threshold=1G"}, nil, nil, `unknown knob "malloc.trim_threshold"; did you mean glibc.malloc.trim_threshold?`},
		{"a setting misspelled", []string{"7", "python.gc.treshold0=1"}, nil, nil, "did you mean python.gc.threshold0"},
		{"no name", []string{"7", "=5"}, nil, nil, `unknown knob ""`},
		{"bad value", []string{"7", "thread.nice=nice"}, nil, nil, "bad value"},
		{"bad number", []string{"7", "pipe.size@x=5"}, nil, nil, "no thread or descriptor number"},
		{"negative number", []string{"7", "pipe.size@-1=5"}, nil, nil, "no thread or descriptor number"},
		{"number of a limit", []string{"7", "limit.core@1=5"}, nil, nil, "as a whole"},
		{"twice", []string{"7", "thread.nice=5", "thread.nice=6"}, nil, nil, "given twice"},
		{"process twice", []string{"7", "7", "thread.nice=5"}, []int{7}, []assignment{{"thread.nice", "5", system.Everywhere, false, 0, false}}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			pids, settings, err := tuneArguments(tt.args)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("%v, want %q", err, tt.err)
				}
				return
			}
			if diff := cmp.Diff(tt.pids, pids); diff != "" || err != nil {
				t.Error(diff, err)
			}
			if diff := cmp.Diff(tt.settings, settings, cmp.AllowUnexported(assignment{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}
