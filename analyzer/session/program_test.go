// SPDX-License-Identifier: Apache-2.0

package session

import (
	"testing"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

func TestProgramOf(t *testing.T) {
	info := func(sum string, command ...string) *attunev1.Process {
		return &attunev1.Process{ExecutableSha256: sum, CommandLine: command}
	}
	rank := info("python", "python3", "job.py", "7")
	rank.Rank = new(int32)
	one := programOf(info("python", "python3", "job.py", "7"))
	tests := []struct {
		name  string
		other *attunev1.Process
		same  bool
	}{
		{"the same command", info("python", "python3", "job.py", "7"), true},
		{"another part of the input", info("python", "python3", "job.py", "12"), true},
		{"another script", info("python", "python3", "other.py", "7"), false},
		{"more arguments", info("python", "python3", "job.py", "7", "7"), false},
		{"other words", info("python", "python3", "job.py", "-v"), false},
		{"another executable", info("pypy", "python3", "job.py", "7"), false},
		{"an executable that is not known yet", info("", "python3", "job.py", "7"), false},
		{"a rank", rank, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := programOf(tt.other); (got == one) != tt.same {
				t.Errorf("%q and %q", got, one)
			}
		})
	}
	if unknown := programOf(info("", "a")); unknown != "" || programOf(rank) != "" {
		t.Errorf("siblings without a name: %q, %q", unknown, programOf(rank))
	}
}
