// SPDX-License-Identifier: Apache-2.0

package track

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/attune-hpc/attune/internal/procid"
)

// TestReadsOfNewProcess holds what a new process costs: each file of /proc that
// is read takes about as long as the work of a tracker on it. Reads are counted
// by the kernel, two for each file: its content and its end.
func TestReadsOfNewProcess(t *testing.T) {
	tests := []struct {
		name  string
		event Event
		files int
	}{
		{"told by the kernel", Event{Kind: Exec, HasUID: true}, 4},
		{"found", Event{}, 5},
	}
	cmd := exec.Command("cat")
	cmd.Env = []string{"PATH=/usr/bin:/bin"}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer stdin.Close()
	// Start returns in the middle of the exec, after which all is read again.
	if _, err := stdin.Write([]byte{'x'}); err != nil {
		t.Fatal(err)
	}
	if _, err := stdout.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if _, err := procid.BootID(); err != nil { // read once for all
		t.Fatal(err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	none := -reads(t) + reads(t) // what counting takes
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			before := reads(t)
			d, err := describe(nil, cmd.Process.Pid, test.event)
			after := reads(t)
			if err != nil {
				t.Fatal(err)
			}
			if err := d.held.Close(); err != nil {
				t.Error(err)
			}
			if got := after - before - none; got > 2*test.files || got < test.files {
				t.Errorf("%d reads, want at most 2 for each of %d files", got, test.files)
			}
			if name := filepath.Base(d.message.Executable); name != "cat" || len(d.message.CommandLine) != 1 {
				t.Errorf("described as %v", d.message)
			}
		})
	}
}

// reads returns how many read system calls this thread has made.
func reads(t *testing.T) (n int) {
	t.Helper()
	text, err := os.ReadFile("/proc/thread-self/io")
	if os.IsNotExist(err) {
		t.Skip("the kernel does not account I/O (CONFIG_TASK_IO_ACCOUNTING)")
	}
	if err != nil {
		t.Fatal(err)
	}
	var bytes int
	if _, err := fmt.Sscanf(string(text), "rchar: %d\nwchar: %d\nsyscr: %d", &bytes, &bytes, &n); err != nil {
		t.Fatal(err)
	}
	return n
}
