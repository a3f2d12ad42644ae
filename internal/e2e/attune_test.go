// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// attune is the command under test.
const attune = "../../bin/attune"

// document is the part of the report that these tests look at; the whole is
// checked against its schema.
type document struct {
	Finished bool `json:"finished"`
	Exit     struct {
		Code   *int   `json:"code"`
		Signal string `json:"signal"`
	} `json:"exit"`
	Processes []struct {
		PID             int      `json:"pid"`
		Exe             string   `json:"exe"`
		Rank            *int     `json:"rank"`
		Mechanisms      []string `json:"mechanisms"`
		NotInstrumented string   `json:"not_instrumented"`
	} `json:"processes"`
	Tunlets []struct {
		Name   string `json:"name"`
		State  string `json:"state"`
		Reason string `json:"reason"`
	} `json:"tunlets"`
	Changes []struct {
		Tunlet  string `json:"tunlet"`
		Process int    `json:"process"`
		Knob    string `json:"knob"`
		Verdict string `json:"verdict"`
		Reason  string `json:"reason"`
	} `json:"changes"`
	Advice []struct {
		Tunlet string `json:"tunlet"`
	} `json:"advice"`
}

// outcome is what somebody sees of a command.
type outcome struct {
	stdout, stderr string
	code           int
	signal         syscall.Signal
}

// run runs a command with the given standard input, for a minute at most.
func run(t *testing.T, stdin string, command ...string) outcome {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Stdin = strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = 10 * time.Second
	killer := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer killer.Stop()
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("run %q: %v", command, err)
	}
	o := outcome{stdout: stdout.String(), stderr: stderr.String(), code: cmd.ProcessState.ExitCode()}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		o.signal = status.Signal()
	}
	return o
}

// runReported runs a command under attune with a report, and returns both.
func runReported(t *testing.T, flags []string, command ...string) (outcome, document) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.json")
	args := append([]string{attune, "run", "--report", file}, flags...)
	o := run(t, "", append(append(args, "--"), command...)...)
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("no report; standard error says:\n%s", o.stderr)
	}
	if err != nil {
		t.Fatal(err)
	}
	mustMatchSchema(t, data)
	var d document
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	return o, d
}

// kept counts the changes of a tunlet that were kept.
func (d document) kept(tunlet string) int {
	n := 0
	for _, c := range d.Changes {
		if c.Tunlet == tunlet && c.Verdict == "kept" {
			n++
		}
	}
	return n
}
