// SPDX-License-Identifier: Apache-2.0

package procid_test

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/attune-hpc/attune/internal/procid"
)

func TestEnviron(t *testing.T) {
	cmd := exec.Command("cat") // until its input ends
	cmd.Env = []string{"A=1", "EMPTY=", "B=2=3"}
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(input, "\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := output.Read(make([]byte, 1)); err != nil { // until then its exec may be under way
		t.Fatal(err)
	}
	environment, err := procid.Environ(cmd.Process.Pid)
	if err != nil {
		t.Error(err)
	}
	for _, want := range cmd.Env {
		if !slices.ContainsFunc(environment, func(entry []byte) bool { return string(entry) == want }) {
			t.Errorf("%q is not in %q", want, environment)
		}
	}
	_ = input.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if _, err := procid.Environ(cmd.Process.Pid); !errors.Is(err, procid.ErrGone) {
		t.Errorf("of who has ended: %v, want ErrGone", err)
	}
}

func TestExecutable(t *testing.T) {
	program, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "sleep")
	if err := exec.Command("cp", program, copied).Run(); err != nil { // no child of ours has it open
		t.Fatal(err)
	}
	command := exec.Command(copied, "1000")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	pid := command.Process.Pid
	if got := procid.Executable(pid); got != copied {
		t.Errorf("got %q, want %q", got, copied)
	}
	if err := os.Remove(copied); err != nil {
		t.Fatal(err)
	}
	if got := procid.Executable(pid); got != copied {
		t.Errorf("deleted: got %q, want %q", got, copied)
	}
	_ = command.Process.Kill()
	_ = command.Wait() // it was killed
	if got := procid.Executable(pid); got != "" {
		t.Errorf("ended: got %q", got)
	}
}
