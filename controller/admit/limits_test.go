// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"os/exec"
	"testing"

	"github.com/attune-hpc/attune/controller/shm"
)

func TestHasLocked(t *testing.T) {
	for _, row := range []struct {
		name, status string
		want         bool
	}{
		{"nothing", "VmSize:\t  100 kB\nVmLck:\t       0 kB\nVmPin:\t 5 kB\n", false},
		{"something", "VmLck:\t    2048 kB\n", true},
		{"round number", "VmLck:\t    1000 kB\n", true},
		{"kernel thread", "Name:\tkthreadd\n", false},
	} {
		if got := hasLocked([]byte(row.status)); got != row.want {
			t.Errorf("%s: %t, want %t", row.name, got, row.want)
		}
	}
}

func TestLimitsOf(t *testing.T) {
	cmd := exec.Command("sh", "-c", "ulimit -v 1000000; echo; exec cat")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := stdout.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if got, want := limitsOf(cmd.Process.Pid), (shm.Limits{Threads: 1, Addresses: 1000000 << 10}); got != want {
		t.Errorf("limits %+v, want %+v", got, want)
	}
	_ = stdin.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if got := limitsOf(1 << 22); got != (shm.Limits{}) {
		t.Errorf("limits %+v of nobody", got)
	}
}
