// SPDX-License-Identifier: Apache-2.0

// Package procmem reads and writes the memory of another process without
// stopping it, through process_vm_readv(2) and process_vm_writev(2).
//
// Both need the permissions of ptrace(2): the same user and a dumpable
// process, or CAP_SYS_PTRACE. A write touches only pages that the process may
// write itself. The kernel copies byte strings: callers that write words which
// other threads read at the same time keep them aligned and change few enough
// bytes that no mixture of old and new is harmful, or use DMLib's mailbox,
// which stores whole words.
//
// The functions are safe for concurrent use.
package procmem

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// ErrPermission means that the kernel does not let this user touch that
// process.
var ErrPermission = errors.New("process memory not accessible: needs the same user and, where kernel.yama.ptrace_scope is not 0, CAP_SYS_PTRACE")

// Read fills buf from address on. A partial read is an error.
func Read(pid int, address uint64, buf []byte) error {
	if len(buf) == 0 {
		return nil
	}
	local := []unix.Iovec{{Base: &buf[0], Len: uint64(len(buf))}}
	remote := []unix.RemoteIovec{{Base: uintptr(address), Len: len(buf)}}
	n, err := unix.ProcessVMReadv(pid, local, remote, 0)
	return check("read", pid, address, n, len(buf), err)
}

// Write stores buf at address. A partial write is an error.
func Write(pid int, address uint64, buf []byte) error {
	if len(buf) == 0 {
		return nil
	}
	local := []unix.Iovec{{Base: &buf[0], Len: uint64(len(buf))}}
	remote := []unix.RemoteIovec{{Base: uintptr(address), Len: len(buf)}}
	n, err := unix.ProcessVMWritev(pid, local, remote, 0)
	return check("write", pid, address, n, len(buf), err)
}

// WriteReadOnly stores buf at address also where the process itself may only
// read (relocated data, code), through /proc/PID/mem.
func WriteReadOnly(pid int, address uint64, buf []byte) error {
	w, err := OpenWriter(pid)
	if err != nil {
		return err
	}
	return errors.Join(w.Write(address, buf), w.Close())
}

// Writer is WriteReadOnly for more than one write. It belongs to the image that
// the process runs when it is opened: after an exec its writes fail.
type Writer struct {
	pid int
	mem *os.File
}

// OpenWriter opens the memory of a process. The caller closes the Writer.
func OpenWriter(pid int) (*Writer, error) {
	mem, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_WRONLY, 0)
	if errors.Is(err, os.ErrPermission) {
		err = ErrPermission
	}
	if err != nil {
		return nil, fmt.Errorf("open memory of process %d: %w", pid, err)
	}
	return &Writer{pid, mem}, nil
}

// Write stores buf at address.
func (w *Writer) Write(address uint64, buf []byte) error {
	n, err := w.mem.WriteAt(buf, int64(address))
	return check("write", w.pid, address, n, len(buf), err)
}

// Close gives the memory up.
func (w *Writer) Close() error { return w.mem.Close() }

func check(what string, pid int, address uint64, n, want int, err error) error {
	switch {
	case errors.Is(err, unix.EPERM):
		err = ErrPermission
	case err == nil && n != want:
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return fmt.Errorf("%s %d bytes at %#x of process %d: %w", what, want, address, pid, err)
	}
	return nil
}
