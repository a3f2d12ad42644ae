// SPDX-License-Identifier: Apache-2.0

// Package asuser has processes of other users, tests that run as they do, and what they may
// enter, connect to and open, in tests that run as root. It has no state; everything may be used
// from any goroutine.
package asuser

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
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

// Folder makes a folder of the test's that all users may enter.
func Folder(t testing.TB) string {
	t.Helper()
	folder := t.TempDir()
	if err := errors.Join(os.Chmod(filepath.Dir(folder), 0o755), os.Chmod(folder, 0o755)); err != nil {
		t.Fatal(err)
	}
	return folder
}

// RunTests runs tests of a test program, to whose command it adds their names. Each has to
// pass and nothing may be skipped: a program without such a test ends without an error.
func RunTests(t testing.TB, command *exec.Cmd, names ...string) {
	t.Helper()
	command.Args = append(command.Args, "-test.v", "-test.run=^("+strings.Join(names, "|")+")$")
	out, err := command.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
		return
	}
	for _, name := range names {
		if !bytes.Contains(out, []byte("--- PASS: "+name+" (")) {
			t.Errorf("%s has not run", name)
		}
	}
	if bytes.Contains(out, []byte("--- SKIP: ")) {
		t.Error("something is skipped")
	}
	if t.Failed() {
		t.Logf("%s", out)
	}
}

// Dial connects as a user: the kernel tells the other end the user of the thread that
// connects.
func Dial(uid uint32, path string) (conn net.Conn, err error) {
	became := Do(uid, func() { conn, err = net.Dial("unix", path) })
	return conn, cmp.Or(became, err)
}

// Open opens a file for reading as a user does.
func Open(uid uint32, path string) (file *os.File, err error) {
	became := Do(uid, func() { file, err = os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0) })
	return file, cmp.Or(became, err)
}

// Do does something in a thread of a user and of the group of the same number, without any
// capability, or says why it cannot. The thread ends with it and is nobody else's.
func Do(uid uint32, do func()) (err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // for good
		for _, call := range []uintptr{unix.SYS_SETRESGID, unix.SYS_SETRESUID} {
			if _, _, errno := unix.RawSyscall(call, uintptr(uid), uintptr(uid), uintptr(uid)); errno != 0 {
				err = fmt.Errorf("become user %d: %w", uid, errno)
				return
			}
		}
		do()
	}()
	<-done
	return err
}
