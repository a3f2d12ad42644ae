// SPDX-License-Identifier: Apache-2.0

//go:build e2e || vm

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/internal/testing/openmpi"
	"github.com/attune-hpc/attune/internal/testing/patience"
)

// lasting is how many seconds a workload is told to run that its test ends:
// longer than any test waits, but not for ever, should the test be killed.
const lasting = "900"

// verdictLimit bounds how long a test waits for a verdict. It is longer than
// patience.Limit: a change may be judged for a minute, be undone and rest before
// it is made again.
const verdictLimit = 5 * time.Minute

// program is a command that runs until its test ends it. Its methods are called
// by the test's goroutine.
type program struct {
	cmd            *exec.Cmd
	stdin          io.WriteCloser
	timeline       string
	stdout, stderr bytes.Buffer
	ended          chan struct{} // closed when the command has ended
}

// start starts a command, in a process group of its own, whose timeline is
// written to a file.
func start(t *testing.T, timeline string, command ...string) *program {
	t.Helper()
	p := &program{cmd: exec.Command(command[0], command[1:]...), timeline: timeline, ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.WaitDelay = 10 * time.Second
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // a program that its test ends dies by a signal
	}()
	t.Cleanup(func() { p.end(t, syscall.SIGKILL) })
	return p
}

// end sends a signal to the command and to what it has started, unless it has
// ended, and waits for its end.
func (p *program) end(t *testing.T, signal syscall.Signal) {
	t.Helper()
	select {
	case <-p.ended:
		return
	default:
	}
	if err := syscall.Kill(-p.cmd.Process.Pid, signal); err != nil {
		t.Errorf("end %q: %v", p.cmd.Args, err)
	}
	patience.Closed(t, "the end of "+p.cmd.Args[0], p.ended)
}

// await waits until the timeline is as wanted. The error holds what the command
// has written.
func (p *program) await(t *testing.T, want condition) error {
	t.Helper()
	limit := time.After(verdictLimit)
	for {
		entries := readTimeline(p.timeline)
		if want.met(entries) {
			return nil
		}
		why := ""
		select {
		case <-p.ended:
			why = "the program has ended"
		case <-limit:
			why = verdictLimit.String() + " are over"
			p.end(t, syscall.SIGKILL)
		case <-time.After(20 * time.Millisecond):
			continue
		}
		text, _ := os.ReadFile(p.timeline) // for whoever reads that the test failed
		return fmt.Errorf("not %s: %s\n%s\n%s\n%s", want.what, why, p.stdout.String(), p.stderr.String(), text)
	}
}

// readTimeline returns the entries of a timeline so far; none before it is there.
func readTimeline(file string) (entries []report.Entry) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	for line := range bytes.Lines(text) {
		var e report.Entry
		if json.Unmarshal(line, &e) == nil { // the last line may not be whole yet
			entries = append(entries, e)
		}
	}
	return entries
}

// runTuned runs a command under attune to its end and returns its report.
func runTuned(t *testing.T, flags []string, command ...string) report.Report {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.json")
	run(t, slices.Concat([]string{attune, "run", "--quiet", "--report", file}, flags, []string{"--"}, command)...)
	return mustReadReport(t, file)
}

// startTuned starts a command under attune, whose report goes to the file.
func startTuned(t *testing.T, flags []string, command ...string) (p *program, reportFile string) {
	t.Helper()
	dir := t.TempDir()
	timeline, reportFile := filepath.Join(dir, "timeline.jsonl"), filepath.Join(dir, "report.json")
	args := []string{attune, "run", "--quiet", "--timeline", timeline, "--report", reportFile}
	return start(t, timeline, slices.Concat(args, flags, []string{"--"}, command)...), reportFile
}

// tuneUntil runs a command under attune until the timeline is as wanted, ends it
// and returns its report.
func tuneUntil(t *testing.T, want condition, flags []string, command ...string) report.Report {
	t.Helper()
	p, file := startTuned(t, flags, command...)
	if err := p.await(t, want); err != nil {
		t.Fatal(err)
	}
	p.end(t, syscall.SIGTERM)
	return mustReadReport(t, file)
}

// awaitRanks starts a command that runs ranks of Open MPI, waits until its
// timeline is as wanted, and ends it.
func awaitRanks(t *testing.T, want condition, launch func() *program) {
	t.Helper()
	_, err := openmpi.Run(t, func() (string, error) {
		p := launch()
		err := p.await(t, want)
		p.end(t, syscall.SIGTERM)
		return "", err
	})
	if err != nil {
		t.Fatal(err)
	}
}
