// SPDX-License-Identifier: Apache-2.0

package track

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func environ(variables ...string) []byte { return []byte(strings.Join(variables, "\x00") + "\x00") }

func TestRank(t *testing.T) {
	const none = -1
	tests := []struct {
		name    string
		environ []string
		want    int32
	}{
		{"no MPI", []string{"HOME=/"}, none},
		{"a task of srun without MPI's help", []string{"SLURM_STEP_ID=0", "SLURM_PROCID=3"}, 3},
		{"slurm's own number is no rank in the batch script", []string{"SLURM_PROCID=0"}, none},
		{"MPICH under mpirun in a step", []string{"SLURM_STEP_ID=2", "SLURM_PROCID=1", "PMI_RANK=3"}, 3},
		{"Open MPI under mpirun on a slurm node", []string{"SLURM_PROCID=0", "OMPI_COMM_WORLD_RANK=5", "PMIX_RANK=5"}, 5},
		{"pmix before the others", []string{"PMI_RANK=1", "OMPI_COMM_WORLD_RANK=2", "PMIX_RANK=3"}, 3},
		{"Open MPI before PMI", []string{"PMI_RANK=1", "OMPI_COMM_WORLD_RANK=2"}, 2},
		{"MPICH", []string{"PMI_RANK=0"}, 0},
		{"PMIx wildcard, then a true one", []string{"PMIX_RANK=4294967294", "PMI_RANK=4"}, 4},
		{"PMIx undefined", []string{"PMIX_RANK=4294967295"}, none},
		{"negative", []string{"PMI_RANK=-1"}, none},
		{"words", []string{"PMI_RANK=one"}, none},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			rank := parseEnviron(environ(test.environ...)).rank()
			switch {
			case rank == nil && test.want != none:
				t.Errorf("no rank, want %d", test.want)
			case rank != nil && *rank != test.want:
				t.Errorf("rank %d, want %d", *rank, test.want)
			}
		})
	}
}

func TestParseCommandLine(t *testing.T) {
	long := strings.Repeat("x\x00", maxArguments+5)
	tests := []struct {
		name, data string
		want       []string
	}{
		{"plain", "ls\x00-l\x00", []string{"ls", "-l"}},
		{"empty argument", "ls\x00\x00-l\x00", []string{"ls", "", "-l"}},
		{"no end", "ls\x00-l", []string{"ls", "-l"}},
		{"not text", "l\xffs\x00", []string{"l?s"}},
		{"nothing", "", nil},
		{"too many", long, strings.Split(strings.Repeat("x ", maxArguments-1)+"x", " ")},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, ParseCommandLine([]byte(test.data))); diff != "" {
				t.Errorf("words (-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzParseEnviron(f *testing.F) {
	f.Add(environ("ATTUNE_JOB=a", "PMI_RANK=1", "=", "x"))
	f.Fuzz(func(t *testing.T, data []byte) {
		env := parseEnviron(data)
		if rank := env.rank(); rank != nil && *rank < 0 {
			t.Errorf("rank %d", *rank)
		}
		if job := env.job(place{session: 1}); job.Id == "" || job.Kind == "" {
			t.Errorf("job %v", job)
		}
	})
}
