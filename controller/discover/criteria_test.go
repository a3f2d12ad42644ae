// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/controller/track"
	"github.com/attune-hpc/attune/internal/testing/files"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// eachMode runs a test with every way to find processes, with those running
// already and those that come.
func eachMode(t *testing.T, registration *attunev1.Registration, options Options, start func(t *testing.T) int) {
	t.Helper()
	for _, mode := range modes() {
		options.Prefer = mode
		t.Run(mode+"/comes", func(t *testing.T) {
			r := mustRun(t, options)
			r.SetRegistrations([]*attunev1.Registration{registration})
			r.mustFindOnly(t, start(t))
		})
		t.Run(mode+"/runs", func(t *testing.T) {
			pid := start(t)
			r := mustRun(t, options)
			r.SetRegistrations([]*attunev1.Registration{registration})
			r.mustFindOnly(t, pid)
		})
	}
}

// mustFindOnly waits for a process and checks that it is this one.
func (r *running) mustFindOnly(t *testing.T, pid int) {
	t.Helper()
	if f := r.mustFind(t); int(f.Process.GetIdentity().GetPid()) != pid {
		t.Errorf("found %v, want process %d", f.Process, pid)
	}
}

func mustWrite(t *testing.T, path, text string) string {
	t.Helper()
	files.Write(t, path, text, 0o755)
	return path
}

func TestArguments(t *testing.T) {
	path := mustProgram(t, "attune-t-args")
	r := site("r", "attune-t-args")
	r.Arguments = `\b(1001|1002)\b`
	eachMode(t, r, Options{}, func(t *testing.T) int {
		mustStart(t, exec.Command(path, "1000"))
		return mustStart(t, exec.Command(path, "1001"))
	})
}

// A script goes under its own name, however its interpreter is found.
func TestScripts(t *testing.T) {
	sleep := "sleep 1000 & wait\n"
	tests := []struct{ name, text string }{
		{"interpreter", "#!/bin/bash\n" + sleep},
		{"by way of env", "#!/usr/bin/env bash\n" + sleep},
		{"with an option", "#!/bin/bash -e\n" + sleep},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			path := mustWrite(t, filepath.Join(t.TempDir(), "attune-t-script"), test.text)
			start := func(t *testing.T) int { return mustStart(t, exec.Command(path)) }
			eachMode(t, site("r", "attune-t-script"), Options{}, start)
			eachMode(t, site("r", path), Options{}, start)
		})
	}
}

// An interpreter is registered with the script as an argument.
func TestInterpreterWithArguments(t *testing.T) {
	// It forks nobody, who would have its command line for a moment.
	script := mustWrite(t, filepath.Join(t.TempDir(), "attune-t-job.sh"), "read -r line\n")
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = read.Close(), write.Close() })
	r := site("r", "bash")
	r.Arguments = "attune-t-job"
	eachMode(t, r, Options{}, func(t *testing.T) int {
		command := exec.Command("bash", script)
		command.Stdin = read
		return mustStart(t, command)
	})
}

func TestSymbolicLink(t *testing.T) {
	path := mustProgram(t, "attune-t-target")
	link := filepath.Join(t.TempDir(), "attune-t-link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	start := func(t *testing.T) int { return mustStart(t, exec.Command(link, "1000")) }
	for _, executable := range []string{path, "attune-t-target", link, "attune-t-link"} {
		t.Run(filepath.Base(executable), func(t *testing.T) { eachMode(t, site("r", executable), Options{}, start) })
	}
	t.Run("the registered one is the link", func(t *testing.T) {
		eachMode(t, site("r", link), Options{}, func(t *testing.T) int { return mustStart(t, exec.Command(path, "1000")) })
	})
}

// What is switched off in its environment is left alone, and it is told why.
func TestSwitchedOffInTheEnvironment(t *testing.T) {
	path := mustProgram(t, "attune-t-off")
	for _, mode := range modes() {
		t.Run(mode, func(t *testing.T) {
			off, other := exec.Command(path, "1000"), exec.Command(path, "1000")
			off.Env, other.Env = append(os.Environ(), "ATTUNE=off"), append(os.Environ(), "ATTUNE=on")
			left := mustStart(t, off)
			r := mustRun(t, Options{Prefer: mode})
			r.SetRegistrations([]*attunev1.Registration{site("r", path)})
			if m := <-r.mismatches; int(m.GetPid()) != left || !strings.Contains(m.GetReason(), "ATTUNE=off") {
				t.Errorf("%v, want process %d left alone because of ATTUNE=off", m, left)
			}
			r.mustFindOnly(t, mustStart(t, other))
		})
	}
}

// A program that was deleted or replaced under a running process is still that
// process' program.
func TestReplacedExecutable(t *testing.T) {
	path := mustProgram(t, "attune-t-replaced")
	pid := mustStart(t, exec.Command(path, "1000"))
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, path, "another file\n")
	r := mustRun(t, Options{})
	r.SetRegistrations([]*attunev1.Registration{site("r", path)})
	r.mustFindOnly(t, pid)
}

// A process that becomes the application by another exec is found as such.
func TestExecAgain(t *testing.T) {
	path := mustProgram(t, "attune-t-again")
	eachMode(t, site("r", path), Options{}, func(t *testing.T) int {
		return mustStart(t, exec.Command("/bin/sh", "-c", fmt.Sprintf("exec /usr/bin/env %s 1000", path)))
	})
}

func TestUser(t *testing.T) {
	path := mustProgram(t, "attune-t-user")
	mustStart(t, exec.Command(path, "1000"))
	r := mustRun(t, Options{})
	theirs := &attunev1.Registration{Id: "theirs", Executable: path, Owner: principal(attunev1.Role_ROLE_USER, "", uint32(os.Getuid()+1))}
	ours := &attunev1.Registration{Id: "ours", Executable: path, Owner: principal(attunev1.Role_ROLE_USER, strconv.Itoa(os.Getuid()), uint32(os.Getuid()))}
	ours.User = strconv.Itoa(os.Getuid())
	if os.Getuid() == 0 {
		ours.Owner.Name = "root"
	}
	r.SetRegistrations([]*attunev1.Registration{theirs, ours})
	if f := r.mustFind(t); f.Registration.GetId() != "ours" {
		t.Errorf("given to %s", f.Registration.GetId())
	}
}

// What another Attune has is left alone.
func TestElsewhere(t *testing.T) {
	path := mustProgram(t, "attune-t-elsewhere")
	theirs := exec.Command(path, "1000")
	theirs.Env = append(os.Environ(), track.JobVariable+"=theirs")
	mustStart(t, theirs)
	r := mustRun(t, Options{})
	r.SetRegistrations([]*attunev1.Registration{site("r", path)})
	mine := mustStart(t, exec.Command(path, "1000"))
	r.mustFindOnly(t, mine)
}

// One execution only.
func TestJobCriterion(t *testing.T) {
	path := mustProgram(t, "attune-t-job")
	start := func(t *testing.T, id string) int {
		command := exec.Command(path, "1000")
		command.Env = append(os.Environ(), "JOB_ID="+id)
		return mustStart(t, command)
	}
	r := site("r", path)
	r.Job = &attunev1.Job{Kind: "sge", Id: "12"}
	eachMode(t, r, Options{}, func(t *testing.T) int {
		start(t, "11")
		return start(t, "12")
	})
}

// What one registration has taken no other gets, until it is withdrawn.
func TestGivenOnce(t *testing.T) {
	path := mustProgram(t, "attune-t-once")
	pid := mustStart(t, exec.Command(path, "1000"))
	r := mustRun(t, Options{})
	first, second := site("first", path), site("second", path)
	r.SetRegistrations([]*attunev1.Registration{first})
	r.mustFindOnly(t, pid)
	r.SetRegistrations([]*attunev1.Registration{first, second})
	after := mustStart(t, exec.Command(path, "1000"))
	r.mustFindOnly(t, after) // and nobody before it
	r.SetRegistrations([]*attunev1.Registration{second})
	found := map[int]bool{}
	for range 2 {
		f := r.mustFind(t)
		if f.Registration.GetId() != "second" {
			t.Errorf("given to %s", f.Registration.GetId())
		}
		found[int(f.Process.GetIdentity().GetPid())] = true
	}
	if !found[pid] || !found[after] {
		t.Errorf("found %v, want %d and %d", found, pid, after)
	}
}

// What a handler refuses is offered to the next registration, once to each.
func TestRefused(t *testing.T) {
	path := mustProgram(t, "attune-t-refused")
	pid := mustStart(t, exec.Command(path, "1000"))
	r := mustRun(t, Options{}, func(r *recorder) { r.refuse = true })
	r.SetRegistrations([]*attunev1.Registration{site("b", path), site("a", path)})
	for _, want := range []string{"a", "b"} {
		if f := r.mustFind(t); f.Registration.GetId() != want || int(f.Process.GetIdentity().GetPid()) != pid {
			t.Errorf("process %d given to %s, want %s", f.Process.GetIdentity().GetPid(), f.Registration.GetId(), want)
		}
	}
	r.SetRegistrations([]*attunev1.Registration{site("a", path), site("b", path), site("c", path)})
	if f := r.mustFind(t); f.Registration.GetId() != "c" {
		t.Errorf("given to %s again", f.Registration.GetId())
	}
}

// A registration that has changed means what it says now, also of processes that
// it did not mean before.
func TestChangedRegistration(t *testing.T) {
	path := mustProgram(t, "attune-t-changed")
	pid := mustStart(t, exec.Command(path, "1000"))
	r := mustRun(t, Options{})
	wrong := site("r", path)
	wrong.Sha256 = strings.Repeat("0", 64)
	r.SetRegistrations([]*attunev1.Registration{wrong})
	<-r.mismatches
	r.SetRegistrations([]*attunev1.Registration{site("r", path)})
	r.mustFindOnly(t, pid)
}

// What a session leaves behind that ends after its registration was withdrawn is
// given to the next one that means it.
func TestGivenAfterTheSession(t *testing.T) {
	path := mustProgram(t, "attune-t-left")
	pid := mustStart(t, exec.Command(path, "1000"))
	r := mustRun(t, Options{})
	r.SetRegistrations([]*attunev1.Registration{site("first", path)})
	r.mustFindOnly(t, pid)
	session := r.Source(0)
	if err := session.Add(pid); err != nil {
		t.Fatal(err)
	}
	other := site("second", path)
	r.SetRegistrations([]*attunev1.Registration{other})
	marker := mustStart(t, exec.Command(path, "1000"))
	r.mustFindOnly(t, marker) // by now the new set is known, and the other process is the session's
	if err := session.Close(); err != nil {
		t.Fatal(err)
	}
	r.mustFindOnly(t, pid)
}

// What a session has whose registration was changed is given anew when the session has ended.
func TestGivenAnew(t *testing.T) {
	path := mustProgram(t, "attune-t-anew")
	pid := mustStart(t, exec.Command(path, "1000"))
	r := mustRun(t, Options{})
	r.SetRegistrations([]*attunev1.Registration{site("r", path)})
	r.mustFindOnly(t, pid)
	session := r.Source(0)
	if err := session.Add(pid); err != nil {
		t.Fatal(err)
	}
	changed := site("r", path)
	changed.Mode = "observe"
	r.SetRegistrations([]*attunev1.Registration{changed})
	marker := mustStart(t, exec.Command(path, "1000"))
	r.mustFindOnly(t, marker)
	if err := session.Close(); err != nil {
		t.Fatal(err)
	}
	f := r.mustFind(t)
	if got := int(f.Process.GetIdentity().GetPid()); got != pid || f.Registration.GetMode() != "observe" {
		t.Errorf("process %d is given to %v, want %d as it is registered now", got, f.Registration, pid)
	}
}

// What a process forks is its session's.
func TestDescendants(t *testing.T) {
	child := mustProgram(t, "attune-t-child")
	parent := mustWrite(t, filepath.Join(t.TempDir(), "attune-t-parent"), "#!/bin/sh\nread go\n"+child+" 1000 &\nwait\n")
	command := exec.Command(parent)
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	pid := mustStart(t, command)
	r := mustRun(t, Options{})
	r.SetRegistrations([]*attunev1.Registration{site("parent", parent), site("child", child)})
	r.mustFindOnly(t, pid)
	if _, err := in.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	for {
		if out, _ := exec.Command("pgrep", "-P", strconv.Itoa(pid), "-x", "attune-t-child").Output(); len(out) > 0 {
			break
		}
	}
	stranger := mustStart(t, exec.Command(child, "1000"))
	r.mustFindOnly(t, stranger)
}
