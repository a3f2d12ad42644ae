// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Build compiles a C file with gcc and returns the program, a file of the
// test's own. flags come last.
//
// Where compiling is slow, ATTUNE_TARGETS names a folder in which programs are
// kept for the length of a test run: the same source with the same flags is
// then compiled once. What a source includes is not looked at.
func Build(tb testing.TB, source string, flags ...string) string {
	tb.Helper()
	out := filepath.Join(tb.TempDir(), strings.TrimSuffix(filepath.Base(source), ".c"))
	args := append([]string{"-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pthread", source}, flags...)
	folder := os.Getenv("ATTUNE_TARGETS")
	if folder == "" {
		compile(tb, out, args)
		return out
	}
	text, err := os.ReadFile(source)
	if err != nil {
		tb.Fatal(err)
	}
	kept := filepath.Join(folder, fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(text, "%q", args))))
	if _, err := os.Stat(kept); err != nil {
		compile(tb, out, args)
		copyProgram(tb, out, kept)
		return out
	}
	copyProgram(tb, kept, out)
	return out
}

// Fewer is n, or a twentieth of it in a virtual machine of scripts/vm, whose
// processor is emulated: for the number of things that a test does.
func Fewer(n int) int {
	if os.Getenv("ATTUNE_VM") != "" {
		return max(1, n/20)
	}
	return n
}

func compile(tb testing.TB, out string, args []string) {
	tb.Helper()
	args = append([]string{"-o", out}, args...)
	if text, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		tb.Fatalf("gcc %s: %v\n%s", strings.Join(args, " "), err, text)
	}
}

// copyProgram makes a program that is not the same file: probes belong to
// files.
func copyProgram(tb testing.TB, from, to string) {
	tb.Helper()
	program, err := os.ReadFile(from)
	if err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(to, program, 0o755); err != nil {
		tb.Fatal(err)
	}
}

// Target is a running program.
type Target struct {
	PID    int
	stdin  io.WriteCloser
	stdout *bufio.Reader
	cmd    *exec.Cmd
}

// Start runs a program with an addition to the environment and waits until it
// says that it is ready. It is killed at the end of the test.
func Start(tb testing.TB, path string, env ...string) *Target {
	tb.Helper()
	cmd := exec.Command(path)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = os.Stderr
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
	tb.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	})
	if line := t.Line(tb); line != "ready" {
		tb.Fatalf("target says %q, want ready", line)
	}
	return t
}

// Ask writes a line to the target and returns the line that it answers.
func (t *Target) Ask(tb testing.TB, line string) string {
	tb.Helper()
	if _, err := io.WriteString(t.stdin, line+"\n"); err != nil {
		tb.Fatal(err)
	}
	return t.Line(tb)
}

// Line reads the next line of the target's output.
func (t *Target) Line(tb testing.TB) string {
	tb.Helper()
	line, err := t.stdout.ReadString('\n')
	if err != nil {
		tb.Fatalf("read from target: %v", err)
	}
	return strings.TrimSuffix(line, "\n")
}

// End closes the target's input and returns how it ended.
func (t *Target) End(tb testing.TB) error {
	tb.Helper()
	if err := t.stdin.Close(); err != nil {
		tb.Fatal(err)
	}
	return t.cmd.Wait()
}
