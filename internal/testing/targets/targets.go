// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Target is a running program. Its methods are for one goroutine, but for Say,
// which may run beside the others.
type Target struct {
	PID    int
	stdin  io.WriteCloser
	stdout *bufio.Reader
	cmd    *exec.Cmd
	ended  bool
}

// Start runs a program with an addition to the environment and waits until it
// says that it is ready. It is killed at the end of the test.
func Start(tb testing.TB, path string, env ...string) *Target {
	tb.Helper()
	cmd := exec.Command(path)
	cmd.Env = append(os.Environ(), env...)
	return StartCommand(tb, cmd)
}

// StartCommand is Start for any command that becomes a target.
func StartCommand(tb testing.TB, cmd *exec.Cmd) *Target {
	tb.Helper()
	t := Launch(tb, cmd)
	t.Expect(tb, "ready")
	return t
}

// Launch is StartCommand for one that does not say that it is ready.
func Launch(tb testing.TB, cmd *exec.Cmd) *Target {
	tb.Helper()
	if cmd.Stderr == nil {
		cmd.Stderr = os.Stderr
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	t := &Target{PID: cmd.Process.Pid, stdin: stdin, stdout: bufio.NewReader(stdout), cmd: cmd}
	tb.Cleanup(t.kill)
	return t
}

func (t *Target) kill() {
	if t.ended {
		return
	}
	_ = t.cmd.Process.Kill() // it may have ended
	_ = t.Wait()
}

// Ask writes a line to the target and returns the line that it answers.
func (t *Target) Ask(tb testing.TB, line string) string {
	tb.Helper()
	if err := t.Say(line); err != nil {
		tb.Fatal(err)
	}
	return t.Line(tb)
}

// Say writes a line to the target.
func (t *Target) Say(line string) error {
	_, err := io.WriteString(t.stdin, line+"\n")
	return err
}

// Line reads the next line of the target's output.
func (t *Target) Line(tb testing.TB) string {
	tb.Helper()
	line, err := t.TryLine()
	if errors.Is(err, io.EOF) {
		tb.Fatalf("the target's output has ended after %q: %v", line, t.Wait())
	}
	if err != nil {
		tb.Fatalf("read from target: %q, %v", line, err)
	}
	return line
}

// TryLine is Line for a target that may end before.
func (t *Target) TryLine() (string, error) {
	line, err := t.stdout.ReadString('\n')
	return strings.TrimSuffix(line, "\n"), err
}

// Expect ends the test if the next line is another one.
func (t *Target) Expect(tb testing.TB, want string) {
	tb.Helper()
	if got := t.Line(tb); got != want {
		tb.Fatalf("target says %q, want %q", got, want)
	}
}

// End closes the target's input and returns how it ended.
func (t *Target) End(tb testing.TB) error {
	tb.Helper()
	if err := t.stdin.Close(); err != nil {
		tb.Fatal(err)
	}
	return t.Wait()
}

// EndWell closes the target's input, and fails the test if the target does not end with status 0.
func (t *Target) EndWell(tb testing.TB) {
	tb.Helper()
	if err := t.End(tb); err != nil {
		tb.Errorf("target ended with %v", err)
	}
}

// Wait returns how the target ended, an [exec.ExitError] if not with status 0.
func (t *Target) Wait() error {
	t.ended = true
	for stopped(t.PID) {
		time.Sleep(time.Millisecond)
	}
	return t.cmd.Wait()
}

// stopped waits until a child stops or ends, and says whether it has stopped: where
// a thread of this process traces the child, the kernel shows its stops to whatever
// thread waits for the child's end, and [exec.Cmd.Wait] takes them for that.
func stopped(pid int) bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOWAIT, nil)
	return err == unix.EINTR || err == nil && info.Code >= cldTrapped
}

// cldTrapped is the least code of a child that lives (<bits/siginfo-consts.h>).
const cldTrapped = 4

// Kill ends the target without asking it.
func (t *Target) Kill() { t.kill() }

// CloseInput ends the target's standard input; it goes on or not.
func (t *Target) CloseInput() { _ = t.stdin.Close() } // a second time is fine
