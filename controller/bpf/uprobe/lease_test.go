// SPDX-License-Identifier: Apache-2.0

package uprobe

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/patience"
)

// TestLeaseOfEndedThread: who opens the file to write is heard of, though the thread that
// took the lease has ended, as those do that traced a process.
func TestLeaseOfEndedThread(t *testing.T) {
	path := filepath.Join(t.TempDir(), "program")
	files.Write(t, path, "code", 0o600)
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }() // read only
	claimed := make(chan os.Signal, 1)
	signal.Notify(claimed, unix.SIGIO)
	defer signal.Stop(claimed)
	a := &Attachment{shared: &attached{target: &target{file: file}, spec: Spec{Path: path}}}
	onEndingThread(t, func() { err = a.Lease() })
	if err != nil {
		t.Fatal(err)
	}
	if a.Claimed() {
		t.Error("claimed by nobody")
	}
	if _, err := unix.Open(path, unix.O_WRONLY|unix.O_NONBLOCK, 0); !errors.Is(err, unix.EAGAIN) {
		t.Fatalf("open to write: %v", err)
	}
	patience.Receive(t, "the signal", claimed)
	if !a.Claimed() {
		t.Error("not claimed")
	}
}

// onEndingThread runs f on a thread of its own, and returns when that has ended.
func onEndingThread(t *testing.T, f func()) {
	t.Helper()
	ended := make(chan int)
	var run func()
	run = func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		thread := unix.Gettid()
		if thread == os.Getpid() { // Go never ends the first thread
			go run()
			return
		}
		f()
		ended <- thread
	}
	go run()
	thread := <-ended
	patience.Until(t, "the end of the thread", func() bool {
		_, err := os.Stat(fmt.Sprintf("/proc/self/task/%d", thread))
		return errors.Is(err, os.ErrNotExist)
	})
}
