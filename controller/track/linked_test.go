// SPDX-License-Identifier: Apache-2.0

package track

import (
	"os"
	"os/exec"
	"slices"
	"testing"
)

func TestReadLinked(t *testing.T) {
	if got := readLinked(os.Getpid()); !slices.Equal(got, []string{LinkedGo}) {
		t.Errorf("this test, which is a Go program, has %q in it", got)
	}
	other := exec.Command("sleep", "60")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	got := readLinked(other.Process.Pid)
	_ = other.Process.Kill()
	_ = other.Wait() // killed
	if got == nil || len(got) != 0 {
		t.Errorf("sleep has %q in it, want an empty list", got)
	}
	if got := readLinked(other.Process.Pid); got == nil || len(got) != 0 {
		t.Errorf("a process that has ended has %q in it, want an empty list", got)
	}
}
