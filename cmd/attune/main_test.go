// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/longgate"
)

// bin is the directory of the built attune and its tunlets.
var bin string

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	var err error
	if bin, err = os.MkdirTemp("", "attune"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(bin)
	// The compiler's cache stays where it is: XDG_CACHE_HOME would move it, and
	// the whole standard library be compiled again.
	if cache, err := os.UserCacheDir(); err == nil && os.Getenv("GOCACHE") == "" {
		os.Setenv("GOCACHE", filepath.Join(cache, "go-build"))
	}
	// Nobody's settings, and nothing that a test leaves behind.
	for _, name := range []string{"XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"} {
		os.Setenv(name, filepath.Join(bin, "home"))
	}
	own, err := os.MkdirTemp(bin, "build")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	longGate, err := longgate.BuildFlags(own)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for _, args := range [][]string{
		{"-ldflags", "-s -w -E attune_entry", "-o", bin, "."},
		{"-o", bin, "../../tunlets/catalogue/cmd/attune-tunlets"},
	} {
		// As the Makefile builds them, which shares its build cache, but for the gate.
		args = slices.Concat([]string{"build", "-trimpath", "-buildvcs=false"}, longGate, args)
		build := exec.Command("go", args...)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "%v: %s", err, out)
			return 1
		}
	}
	if err := os.Symlink("attune-tunlets", filepath.Join(bin, "attune-tunlet-malloc")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// outcome is everything the parent of a command sees of it.
type outcome struct {
	stdout, stderr string
	status         string
	code           int
}

// shell runs a script in which $ATTUNE_BINARY is the command and $RUN stands before
// the program.
func shell(t *testing.T, script, run string) outcome {
	t.Helper()
	return shellIn(t, t.TempDir(), script, run)
}

func shellIn(t *testing.T, dir, script, run string) outcome {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "RUN="+run, "ATTUNE_BINARY="+filepath.Join(bin, "attune"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return outcome{stdout.String(), stderr.String(), cmd.ProcessState.String(), cmd.ProcessState.ExitCode()}
}

// quietly is $RUN for a program whose parent must see nothing of attune.
func quietly() string { return filepath.Join(bin, "attune") + " run --quiet --" }
