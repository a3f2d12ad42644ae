// SPDX-License-Identifier: Apache-2.0

package track

import (
	"os"
	"strings"
	"testing"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

func TestJob(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	const head = "OMPI_MCA_orte_hnp_uri=1273233408.0;tcp://10.99.0.1:34057;tcp6://[fd00::1]:1"
	tests := []struct {
		name    string
		environ []string
		want    string // key
	}{
		{"nothing", []string{"HOME=/"}, "session/77@" + host + ".78"},
		{"empty counts for nothing", []string{"SLURM_JOB_ID=", "PBS_JOBID=9.host"}, "pbs/9.host"},
		{"slurm step", []string{"SLURM_JOB_ID=5", "SLURM_STEP_ID=0"}, "slurm/5.0"},
		{"the batch script", []string{"SLURM_JOB_ID=5"}, "slurm/5"},
		{"srun with pmix", []string{"PMIX_NAMESPACE=slurm.pmix.5.1", "SLURM_JOB_ID=5", "SLURM_STEP_ID=1"}, "slurm/5.1"},
		{"srun with pmi2", []string{"PMI_FD=11", "PMI_JOBID=5.1", "SLURM_JOB_ID=5", "SLURM_STEP_ID=1"}, "slurm/5.1"},
		{"mpirun beside the batch script", []string{"PMIX_NAMESPACE=12", head, "SLURM_JOB_ID=5"}, "slurm/5.12@10.99.0.1:34057"},
		{"mpirun on another node", []string{"PMIX_NAMESPACE=12", head, "SLURM_JOB_ID=5", "SLURM_STEP_ID=0"}, "slurm/5.12@10.99.0.1:34057"},
		{"Open MPI 5", []string{"PMIX_NAMESPACE=prterun-host-99@1", "SLURM_JOB_ID=5", "SLURM_STEP_ID=0"}, "slurm/5.prterun-host-99@1"},
		{"hydra, whose proxy is not found", []string{"PMI_FD=5", "SLURM_JOB_ID=5", "SLURM_STEP_ID=2"}, "slurm/5.2"},
		{"grid engine task", []string{"JOB_ID=12", "SGE_TASK_ID=3"}, "sge/12.3"},
		{"grid engine without task", []string{"JOB_ID=12", "SGE_TASK_ID=undefined"}, "sge/12"},
		{"mpirun in a grid engine task", []string{"JOB_ID=12", "SGE_TASK_ID=3", "PMIX_NAMESPACE=7"}, "sge/12.3.7"},
		{"mpirun in a grid engine job", []string{"JOB_ID=12", "SGE_TASK_ID=undefined", "PMIX_NAMESPACE=7"}, "sge/12.7"},
		{"lsf without array", []string{"LSB_JOBID=8", "LSB_JOBINDEX=0"}, "lsf/8"},
		{"mpirun without batch system", []string{"PMIX_NAMESPACE=12", head}, "pmix/12@10.99.0.1:34057"},
		{"globus", []string{"GLOBUS_GRAM_JOB_HANDLE=https://h/1"}, "globus/https://h/1"},
		{"first of two", []string{"PBS_JOBID=a", "PBS_JOBID=b"}, "pbs/a"},
		{"not text", []string{"PBS_JOBID=a\xff"}, "pbs/a?"},
		{"too long", []string{"PBS_JOBID=" + strings.Repeat("x", maxTextBytes+1)}, "session/77@" + host + ".78"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			job := parseEnviron(environ(test.environ...)).job(place{pid: 80, session: 77, group: 78})
			if got := job.Key(); got != test.want {
				t.Errorf("job %q, want %q", got, test.want)
			}
		})
	}
}

// A command that leads its session needs no group.
func TestJobOfSessionLeader(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	want := (&attunev1.Job{Kind: "session", Id: "77@" + host}).Key()
	if got := (environment{}).job(place{pid: 77, session: 77, group: 77}).Key(); got != want {
		t.Errorf("job %q, want %q", got, want)
	}
}
