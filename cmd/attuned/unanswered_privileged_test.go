// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package main

import (
	"bufio"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/silentfs"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Two ordinary users.
const (
	hostileUser  = 5001
	harmlessUser = 5002
)

// userCommand is a command of a user's.
func userCommand(uid uint32, name string, arguments ...string) *exec.Cmd {
	command := exec.Command(name, arguments...)
	command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	return command
}

// mustStart starts a command, and returns when it has said a line, if it says any.
func mustStart(t *testing.T, command *exec.Cmd, says bool) *exec.Cmd {
	t.Helper()
	out, err := command.StdoutPipe()
	if err == nil {
		_, err = command.StdinPipe() // open until it is killed
	}
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Process.Kill() }) // it ends when what it maps does
	if says {
		if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	return command
}

// mustCopy copies a program to where users see it.
func (s *site) mustCopy(from, name string) string {
	s.t.Helper()
	data, err := os.ReadFile(from)
	if err == nil {
		err = targets.WriteProgram(s.path(name), data)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return s.path(name)
}

// registerFor registers a program as a user does.
func (s *site) registerFor(uid uint32, id, executable string) {
	s.t.Helper()
	s.put(&attunev1.Registration{
		Id: id, Executable: executable, Mode: "observe", RegisteredUnixNano: time.Now().UnixNano(),
		Owner: &attunev1.Principal{Role: attunev1.Role_ROLE_USER, Name: fmt.Sprint("u", uid), Uid: uid},
	})
}

// said counts lines of the daemon's log that have all the words.
func (s *site) said(words ...string) (lines int) {
	text := files.Read(s.t, s.path("log"))
	for line := range strings.Lines(string(text)) {
		all := true
		for _, word := range words {
			all = all && strings.Contains(line, word)
		}
		if all {
			lines++
		}
	}
	return lines
}

// What belongs to a user may not answer whoever reads it: memory that a FUSE server or a
// userfaultfd backs, executables and directories of such a server, a FIFO in the place of
// a script. The daemon goes on, finds what other users start, says whom it refuses once,
// and ends at once. One after the other: every daemon of the node meets every such process.
func TestUnansweredReads(t *testing.T) {
	tests := []struct {
		name string
		// attack has programs, and perhaps registrations, of the hostile user; hung
		// waits until what it has prepared was read.
		attack func(t *testing.T, s *site) (hung func())
		logged int
	}{
		{"arguments in a mapping of FUSE", attackByMapping, 1},
		{"arguments in a userfaultfd", attackByFault, 0},
		{"program on FUSE", attackByProgram, 1},
		{"script on FUSE", attackByScript, 1},
		{"registered path on FUSE", attackByPath, 1},
		{"script that is a FIFO", attackByFIFO, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := mustSiteOnly(t)
			s.write("policy.yaml", "service:\n  - mode: observe\n    owners: [role:user]\n")
			hung := tt.attack(t, s)
			daemon := s.attuned()
			patience.Until(t, "the daemon", func() bool { status, _ := s.get("/readyz"); return status == http.StatusOK })
			hung()
			program := s.mustCopy("/bin/cat", "harmless")
			s.registerFor(harmlessUser, "harmless", program)
			mustStart(t, userCommand(harmlessUser, program), false)
			patience.Until(t, "the other user's program", func() bool { return s.said("session begins here", "registration=harmless") > 0 })
			refused := func() int { return s.said("cannot be read", fmt.Sprint("uid=", hostileUser)) }
			if tt.logged > 0 {
				patience.Until(t, "word of the refusal", func() bool { return refused() > 0 })
			}
			if got := refused(); got != tt.logged {
				t.Errorf("the refusal was logged %d times, want %d", got, tt.logged)
			}
			mustEndSoon(t, daemon)
		})
	}
}

// mustEndSoon ends a daemon, which waits for no read.
func mustEndSoon(t *testing.T, daemon *exec.Cmd) {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- daemon.Wait() }()
	_ = daemon.Process.Signal(unix.SIGTERM) // Wait says whether it had ended before
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the daemon ended with %v", err)
		}
	case <-time.After(patience.Limit):
		_ = daemon.Process.Kill()
		select {
		case <-ended:
			t.Error("the daemon does not end when it is asked to, only when it is killed")
		case <-time.After(patience.Limit):
			t.Error("the daemon does not end, not even by SIGKILL")
		}
	}
}

func attackByMapping(t *testing.T, s *site) func() {
	fs := silentfs.Mount(t, hostileUser, make([]byte, 1<<20))
	program := s.mustCopy(targets.Program(t, "unread"), "hostile")
	fs.Unread(t, hostileUser, program)
	return func() {
		s.registerFor(hostileUser, "hostile", program)
		patience.Receive(t, "a read of the file", fs.Asked)
	}
}

func attackByFault(t *testing.T, s *site) func() {
	device, err := os.OpenFile("/dev/userfaultfd", os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("before Linux 6.1 no user can have the kernel wait for a userfaultfd")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer device.Close()
	program := s.mustCopy(targets.Program(t, "unread"), "hostile")
	command := userCommand(hostileUser, program, "fault", "3")
	command.ExtraFiles = []*os.File{device}
	mustStart(t, command, true)
	return func() { s.registerFor(hostileUser, "hostile", program) }
}

func attackByProgram(t *testing.T, s *site) func() {
	content := files.Read(t, "/bin/cat")
	fs := silentfs.Mount(t, hostileUser, content)
	// A shell executes it: this process, which serves the file, must not wait for an exec
	// of it, in which Go's runtime stands still.
	program := mustStart(t, userCommand(hostileUser, "/bin/sh", "-c", `exec "$0"`, fs.File), false)
	patience.Until(t, "the exec", func() bool {
		path, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", program.Process.Pid))
		return err == nil && path == fs.File
	})
	fs.Silence(true)
	return func() {
		s.registerFor(hostileUser, "hostile", filepath.Base(fs.File)) // no path to follow
		patience.Receive(t, "a read of the file", fs.Asked)
	}
}

func attackByScript(t *testing.T, s *site) func() {
	fs := silentfs.Mount(t, hostileUser, []byte("#!/bin/sh\necho ready\nread line\n"))
	mustStart(t, userCommand(hostileUser, "/bin/sh", fs.File), true)
	fs.Silence(true)
	return func() {
		s.registerFor(hostileUser, "hostile", filepath.Dir(fs.File)+"/fil?") // no path to follow
		patience.Receive(t, "a look at the script", fs.Asked)
	}
}

func attackByPath(t *testing.T, s *site) func() {
	fs := silentfs.Mount(t, hostileUser, nil)
	fs.Silence(true)
	return func() {
		s.registerFor(hostileUser, "hostile", fs.File)
		patience.Receive(t, "a look at the path", fs.Asked)
	}
}

func attackByFIFO(t *testing.T, s *site) func() {
	fifo := s.path("fifo")
	if err := unix.Mkfifo(fifo, 0o777); err != nil {
		t.Fatal(err)
	}
	mustStart(t, userCommand(hostileUser, "/usr/bin/tail", fifo), false)
	return func() { s.registerFor(hostileUser, "hostile", fifo) }
}
