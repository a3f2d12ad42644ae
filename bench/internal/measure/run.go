// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/attune-hpc/attune/internal/beat"
)

// Line is one line of a program's standard output.
type Line struct {
	// At is when it arrived.
	At time.Time
	// Text is the line without its end.
	Text string
}

// Result is what one run of a program gave.
type Result struct {
	// Started is when the program was started, just before the fork.
	Started time.Time
	// Wall is the time from Started to its end.
	Wall time.Duration
	// CPU is the CPU time of the program and of what it started and waited for.
	CPU time.Duration
	// Lines is its standard output.
	Lines []Line
}

// tuningVariables are left out of every program's environment: a benchmark
// says itself which setting it measures.
var tuningVariables = []string{"GLIBC_TUNABLES", "MALLOC_", "OMPI_MCA_", "ATTUNE", "LD_PRELOAD"}

// Environment returns this process's environment without tuning settings, and
// with the given "NAME=value" entries.
func Environment(extra ...string) []string {
	env := slices.DeleteFunc(os.Environ(), func(entry string) bool {
		return slices.ContainsFunc(tuningVariables, func(prefix string) bool {
			return strings.HasPrefix(entry, prefix)
		})
	})
	return append(env, extra...)
}

// Run runs a command to its end with the given settings added to the
// environment. An error says how it ended, with the end of its standard error.
// When ctx ends first, the command is asked to terminate, and killed five
// seconds later.
func Run(ctx context.Context, command []string, settings ...string) (Result, error) {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = Environment(settings...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return Result{}, err
	}
	result := Result{Started: time.Now()}
	if err := cmd.Start(); err != nil {
		return Result{}, err
	}
	lines, readErr := readLines(out)
	err = errors.Join(readErr, cmd.Wait())
	result.Lines, result.Wall = lines, time.Since(result.Started)
	result.CPU = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if err != nil {
		return result, fmt.Errorf("%s: %w%s", strings.Join(command, " "), err, lastLines(stderr.String(), 5))
	}
	return result, nil
}

// Pause waits for d. If ctx ends first, Pause returns why.
func Pause(ctx context.Context, d time.Duration) error {
	if beat.Pause(ctx, d) {
		return nil
	}
	return context.Cause(ctx)
}

// Await looks every 10 ms until something holds. It returns an error that says what was
// waited for, if that does not come within limit or ctx ends first.
func Await(ctx context.Context, limit time.Duration, what string, holds func() bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not within %v", limit))
	defer cancel()
	for !holds() {
		if err := Pause(ctx, 10*time.Millisecond); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	return nil
}

// Milliseconds returns a time as a number of them.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// StartPiped starts a command that the caller writes to and reads from. Its Wait closes both.
func StartPiped(cmd *exec.Cmd) (in io.WriteCloser, out *bufio.Reader, err error) {
	if in, err = cmd.StdinPipe(); err != nil {
		return nil, nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	return in, bufio.NewReader(stdout), cmd.Start()
}

// CopyProgram copies a program into a folder, which need not be there.
func CopyProgram(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, data, 0o755))
}

func readLines(from io.Reader) ([]Line, error) {
	var lines []Line
	scanner := bufio.NewScanner(from)
	for scanner.Scan() {
		lines = append(lines, Line{At: time.Now(), Text: scanner.Text()})
	}
	return lines, scanner.Err()
}

func lastLines(text string, most int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	lines = lines[max(0, len(lines)-most):]
	return "\n" + strings.Join(lines, "\n")
}
