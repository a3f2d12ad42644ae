// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"errors"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/testing/files"
)

const echo = `
#include <stdio.h>
int main(void) {
    char line[64];
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin) != NULL) {
        fputs(line, stdout);
        fflush(stdout);
    }
    return STATUS;
}
`

func TestTarget(t *testing.T) {
	target := Start(t, BuildText(t, "echo", echo, "-DSTATUS=3"))
	if got := target.Ask(t, "as it was"); got != "as it was" {
		t.Errorf("target says %q", got)
	}
	err := target.End(t)
	if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 3 { //nolint:errorlint // Wait returns it unwrapped
		t.Errorf("ended with %v, want status 3", err)
	}
}

// TestTracedTarget: a stop for a tracer that is a thread of the parent is no end.
func TestTracedTarget(t *testing.T) {
	runtime.LockOSThread() // who traces is one thread
	defer runtime.UnlockOSThread()
	target := Start(t, BuildText(t, "echo", echo, "-DSTATUS=0"))
	if err := errors.Join(unix.PtraceSeize(target.PID), unix.PtraceInterrupt(target.PID)); err != nil {
		t.Fatal(err)
	}
	target.CloseInput()
	ended := make(chan error, 1)
	go func() { ended <- target.Wait() }()
	select {
	case err := <-ended:
		t.Fatalf("stopped, and said to have ended with %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	if err := unix.PtraceDetach(target.PID); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("ended with %v", err)
	}
}

// What is compiled once is what the compiler would make again, and no test
// has the file of another.
func TestBuildOnce(t *testing.T) {
	first, second := BuildText(t, "echo", echo, "-DSTATUS=0"), BuildText(t, "echo", echo, "-DSTATUS=0")
	other, changed := BuildText(t, "echo", echo, "-DSTATUS=1"), BuildText(t, "echo", echo+"\n\nint more;\n", "-DSTATUS=0")
	if first == second || filepath.Base(first) != "echo" {
		t.Errorf("programs %s and %s", first, second)
	}
	read := func(path string) string {
		content := files.Read(t, path)
		return string(content)
	}
	if read(first) != read(second) || read(first) == read(other) || read(first) == read(changed) {
		t.Error("the same program differs, or different ones do not")
	}
}
