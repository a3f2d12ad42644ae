// SPDX-License-Identifier: Apache-2.0

// Package asuser has processes of other users, and connects to Unix sockets and opens files
// as they do, in tests that run as root. It has no state; everything may be used from any goroutine.
package asuser

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/patience"
)

// Sleep starts a process that does nothing, and returns its pid when it is the user's:
// the kernel lets go of whoever starts a program before. It ends with the test.
func Sleep(t testing.TB, uid uint32) int {
	t.Helper()
	command := exec.Command("sleep", "1000")
	if uid != uint32(os.Geteuid()) {
		command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait() // killed
	})
	patience.Until(t, "a process of the user's", func() bool {
		owner, err := procid.Owner(command.Process.Pid)
		return err == nil && owner == uid
	})
	return command.Process.Pid
}

// Dial connects as a user: the kernel tells the other end the user of the thread that
// connects. That thread ends with its goroutine and is nobody else's.
func Dial(uid uint32, path string) (conn net.Conn, err error) {
	become(uid, &err, func() { conn, err = net.Dial("unix", path) })
	return conn, err
}

// Open opens a file for reading as a user does.
func Open(uid uint32, path string) (file *os.File, err error) {
	become(uid, &err, func() { file, err = os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0) })
	return file, err
}

// become does something in a thread of a user's, or says why it cannot.
func become(uid uint32, err *error, do func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // for good
		_, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid))
		if errno != 0 {
			*err = fmt.Errorf("become user %d: %w", uid, errno)
			return
		}
		do()
	}()
	<-done
}
