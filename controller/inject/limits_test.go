// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// TestLimitOnThreads: where none can be started the borrowed one does it all.
func TestLimitOnThreads(t *testing.T) {
	b := newBench(t)
	program := targets.Program(t, "plain")
	// Address space for no more stacks: pthread_create answers EAGAIN.
	h := targets.StartCommand(t, exec.Command(program))
	size := virtualBytes(t, h.PID) + 16<<20
	if err := unix.Prlimit(h.PID, unix.RLIMIT_AS, &unix.Rlimit{Cur: size, Max: size}, nil); err != nil {
		t.Fatal(err)
	}
	result, err := Inject(t.Context(), mustOpen(t, h.PID), b.options)
	if err != nil {
		t.Fatal(err) // the memory that is shared was made smaller
	}
	free(t, result)
	h.Right(t)
	h.Finish(t)
}

func virtualBytes(t *testing.T, pid int) uint64 {
	t.Helper()
	content := files.Read(t, fmt.Sprintf("/proc/%d/statm", pid))
	pages, err := strconv.ParseUint(strings.Fields(string(content))[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * pageBytes
}

// TestOneThread: a program that never had a second one does not get one.
func TestOneThread(t *testing.T) {
	b := newBench(t)
	cmd := exec.Command("/bin/cat")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out")
	if cmd.Stdout, err = os.Create(out); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // it may have ended
	const text = "as it was\n"
	if _, err := io.WriteString(stdin, text); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		result := retry(t, func() (Result, error) { return Inject(t.Context(), mustOpen(t, cmd.Process.Pid), b.options) })
		if result.Helper != 0 {
			t.Errorf("thread %d was started in a program of one", result.Helper)
		}
		free(t, result)
		if _, err := io.WriteString(stdin, text); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(stdin.Close(), cmd.Wait()); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(out); err != nil || string(got) != strings.Repeat(text, 6) {
		t.Errorf("copied %q, %v", got, err)
	}
}

// retry is for a program that may not have come to its main yet.
func retry(t *testing.T, enter func() (Result, error)) Result {
	t.Helper()
	var result Result
	patience.Until(t, "its main", func() bool {
		var err error
		result, err = enter()
		return err == nil
	})
	return result
}
