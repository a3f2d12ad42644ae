// SPDX-License-Identifier: Apache-2.0

package attunev1_test

import (
	"testing"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

func TestJobKey(t *testing.T) {
	tests := []struct {
		job  *attunev1.Job
		want string
	}{
		{nil, ""},
		{&attunev1.Job{Kind: "slurm", Id: "12", Step: "0"}, "slurm/12.0"},
		{&attunev1.Job{Kind: "session", Id: "4711"}, "session/4711"},
	}
	for _, test := range tests {
		if got := test.job.Key(); got != test.want {
			t.Errorf("key of %v is %q, want %q", test.job, got, test.want)
		}
	}
}
