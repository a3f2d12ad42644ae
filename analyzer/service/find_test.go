// SPDX-License-Identifier: Apache-2.0

package service

import (
	"testing"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// A session is found by what the batch system calls its job.
func TestSessionsAreFoundByJob(t *testing.T) {
	for _, tt := range []struct {
		job  *attunev1.Job
		name string
		is   bool
	}{
		{&attunev1.Job{Kind: "slurm", Id: "1347"}, "1347", true},
		{&attunev1.Job{Kind: "slurm", Id: "1347"}, "slurm/1347", true},
		{&attunev1.Job{Kind: "slurm", Id: "1347"}, "slurm-1347", true},
		{&attunev1.Job{Kind: "slurm", Id: "1347"}, "1347.0", true},
		{&attunev1.Job{Kind: "slurm", Id: "1347", Step: "0"}, "1347", true},
		{&attunev1.Job{Kind: "slurm", Id: "1347", Step: "0"}, "slurm-1347.0", true},
		{&attunev1.Job{Kind: "slurm", Id: "1347", Step: "0"}, "1347.1", false},
		{&attunev1.Job{Kind: "slurm", Id: "1347"}, "134", false},
		{&attunev1.Job{Kind: "slurm", Id: "1347"}, "13470", false},
		{&attunev1.Job{Kind: "slurm", Id: "1347"}, "1347.", false},
		{&attunev1.Job{Kind: "slurm", Id: "1347"}, "pbs/1347", false},
		{&attunev1.Job{Kind: "slurm", Id: "1347"}, "slurm", false},
		{&attunev1.Job{Kind: "pbs", Id: "12.server", Step: "3"}, "12.server.3", true},
		{&attunev1.Job{}, "", false},
		{nil, ".0", false},
	} {
		if is := OfJob(&attunev1.SessionRecord{Job: tt.job}, tt.name); is != tt.is {
			t.Errorf("%q of %v: %v", tt.name, tt.job, is)
		}
	}
}
