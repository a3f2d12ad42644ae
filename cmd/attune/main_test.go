// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/attune-hpc/attune/internal/readers"
	"github.com/attune-hpc/attune/internal/testing/gobuild"
)

// bin is the directory of the built attune and its tunlets.
var bin string

func TestMain(m *testing.M) {
	readers.ServeIfAsked(readings()...) // for commands that run in this process
	os.Exit(gobuild.Main(m, setUp,
		gobuild.Command{Package: ".", Flags: []string{"-ldflags", "-s -w -E attune_entry"}, LongGate: true},
		gobuild.Command{Package: "../../tunlets/catalogue/cmd/attune-tunlets"},
	))
}

func setUp(built string) error {
	bin = built
	// The compiler's cache stays where it is: XDG_CACHE_HOME would move it, and
	// the whole standard library be compiled again.
	if cache, err := os.UserCacheDir(); err == nil && os.Getenv("GOCACHE") == "" {
		os.Setenv("GOCACHE", filepath.Join(cache, "go-build"))
	}
	// Nobody's settings, and nothing that a test leaves behind.
	for _, name := range []string{"XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"} {
		os.Setenv(name, filepath.Join(bin, "home"))
	}
	return os.Symlink("attune-tunlets", filepath.Join(bin, "attune-tunlet-malloc"))
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
