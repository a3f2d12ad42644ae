// SPDX-License-Identifier: Apache-2.0

package track

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

func environ(variables ...string) []byte { return []byte(strings.Join(variables, "\x00") + "\x00") }

func TestJob(t *testing.T) {
	tests := []struct {
		name    string
		environ []string
		want    *attunev1.Job
	}{
		{"nothing", []string{"HOME=/"}, &attunev1.Job{Kind: "session", Id: "77"}},
		{"attune before all", []string{"SLURM_JOB_ID=5", "ATTUNE_JOB=a1", "PMIX_NAMESPACE=n"}, &attunev1.Job{Kind: "attune", Id: "a1"}},
		{"empty counts for nothing", []string{"ATTUNE_JOB=", "PBS_JOBID=9.host"}, &attunev1.Job{Kind: "pbs", Id: "9.host"}},
		{"slurm step", []string{"SLURM_JOB_ID=5", "SLURM_STEP_ID=0"}, &attunev1.Job{Kind: "slurm", Id: "5", Step: "0"}},
		{"slurm without step, under mpirun on the batch node", []string{"SLURM_JOB_ID=5"}, &attunev1.Job{Kind: "slurm", Id: "5"}},
		{"slurm before pmix", []string{"PMIX_NAMESPACE=slurm.pmix.5.0", "SLURM_JOB_ID=5", "SLURM_STEP_ID=1"}, &attunev1.Job{Kind: "slurm", Id: "5", Step: "1"}},
		{"grid engine task", []string{"JOB_ID=12", "SGE_TASK_ID=3"}, &attunev1.Job{Kind: "sge", Id: "12", Step: "3"}},
		{"grid engine without task", []string{"JOB_ID=12", "SGE_TASK_ID=undefined"}, &attunev1.Job{Kind: "sge", Id: "12"}},
		{"lsf without array", []string{"LSB_JOBID=8", "LSB_JOBINDEX=0"}, &attunev1.Job{Kind: "lsf", Id: "8"}},
		{"pmix", []string{"PMIX_NAMESPACE=host.1"}, &attunev1.Job{Kind: "pmix", Id: "host.1"}},
		{"globus", []string{"GLOBUS_GRAM_JOB_HANDLE=https://h/1"}, &attunev1.Job{Kind: "globus", Id: "https://h/1"}},
		{"first of two", []string{"ATTUNE_JOB=a", "ATTUNE_JOB=b"}, &attunev1.Job{Kind: "attune", Id: "a"}},
		{"not text", []string{"ATTUNE_JOB=a\xff"}, &attunev1.Job{Kind: "attune", Id: "a?"}},
		{"too long", []string{"ATTUNE_JOB=" + strings.Repeat("x", maxTextBytes+1)}, &attunev1.Job{Kind: "session", Id: "77"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := parseEnviron(environ(test.environ...)).job(77)
			if diff := cmp.Diff(test.want, got, protocmp.Transform()); diff != "" {
				t.Errorf("job (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRank(t *testing.T) {
	const none = -1
	tests := []struct {
		name    string
		environ []string
		want    int32
	}{
		{"no MPI", []string{"HOME=/"}, none},
		{"slurm's own number is no rank: under mpirun it is the daemon's", []string{"SLURM_PROCID=3"}, none},
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
		if job := env.job(1); job.Id == "" || job.Kind == "" {
			t.Errorf("job %v", job)
		}
	})
}
