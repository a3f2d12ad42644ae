// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package taskaccount

import (
	"errors"
	"os/exec"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/testing/targets"
)

// TestWorkersOfIOUring: a process is accounted for until its own thread has ended, though a worker that the
// kernel made for it has ended before, of which no fork was told.
func TestWorkersOfIOUring(t *testing.T) {
	needIOUring(t)
	program := targets.Build(t, "testdata/io_worker.c", "-O2")
	totals, list := mustAccount(t, mustAccounts(t), exec.Command(program))
	if len(list) != 1 || totals.Done != 1 {
		t.Fatalf("%d processes, of %+v", len(list), totals)
	}
	if p := list[0]; p.End < p.Start || p.Taken.ReadChars < 1_000_000 || p.Threads != 1 {
		t.Errorf("%+v", p)
	}
}

// needIOUring skips a test where the kernel refuses io_uring.
func needIOUring(t *testing.T) {
	t.Helper()
	var params [120]byte // struct io_uring_params
	fd, _, err := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params)), 0)
	switch {
	case errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM):
		t.Skip("the kernel refuses io_uring: ", err)
	case err != 0:
		t.Fatal(err)
	}
	if err := unix.Close(int(fd)); err != nil {
		t.Error(err)
	}
}
