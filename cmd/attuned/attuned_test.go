// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/analyzer"
	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/internal/testing/longgate"
	"github.com/attune-hpc/attune/internal/testing/patience"
)

// attuned runs as a process of its own and serves an Analyzer elsewhere: a
// program with the environment that it prints comes under control.
func TestControllerOfItsOwn(t *testing.T) {
	dir := t.TempDir()
	a, err := analyzer.New(analyzer.Config{Mode: "observe", Command: []string{"sleep"}, JobID: "own"})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", filepath.Join(dir, "a.sock"))
	if err != nil {
		t.Fatal(err)
	}
	ctx := patience.Context(t)
	served := make(chan error, 1)
	go func() { served <- a.Serve(ctx, listener) }()
	if err := a.Start(ctx); err != nil {
		t.Fatal(err)
	}

	daemon, env := startDaemon(t, dir)
	program := exec.CommandContext(ctx, "sleep", "0.4")
	program.Env = append(os.Environ(), env...)
	if out, err := program.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("program: %v, says %q", err, out)
	}
	if err := daemon.Process.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := daemon.Wait(); err != nil {
		t.Errorf("attuned ended with %v", err)
	}
	r := a.Finish(ctx, report.Exit{})
	if err := <-served; err != nil {
		t.Errorf("serve: %v", err)
	}
	if len(r.Processes) != 1 || !r.Processes[0].Instrumented || !strings.HasSuffix(r.Processes[0].Exe, "sleep") {
		t.Errorf("processes in the report: %+v", r.Processes)
	}
}

// startDaemon builds and starts attuned, and returns what it says a program of
// the job needs.
func startDaemon(t *testing.T, dir string) (*exec.Cmd, []string) {
	t.Helper()
	binary := filepath.Join(dir, "attuned")
	buildDaemon(t, binary)
	daemon := exec.Command(binary, "--analyzer", "unix:"+filepath.Join(dir, "a.sock"),
		"--gate", filepath.Join(dir, "gate", "g.sock"), "--state-dir", filepath.Join(dir, "state"),
		"--job", "own", "--no-bpf", "--log-level", "error", "--config", os.DevNull)
	daemon.Stderr = os.Stderr
	stdout, err := daemon.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = daemon.Process.Kill() }) // it has ended unless the test failed
	var env []string
	lines := bufio.NewScanner(stdout)
	for len(env) < 4 && lines.Scan() {
		env = append(env, lines.Text())
	}
	if len(env) != 4 {
		t.Fatalf("attuned says %q", env)
	}
	return daemon, env
}

// buildDaemon builds attuned or, where there is no Go, as in the virtual machines
// of make test-vm, takes what make has built.
func buildDaemon(t *testing.T, binary string) {
	t.Helper()
	flags, err := longgate.BuildFlags(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", append(append([]string{"build"}, flags...), "-o", binary, ".")...)
	if build.Err != nil {
		build = exec.Command("cp", "../../bin/attuned", binary)
	}
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build.Args, err, out)
	}
}
