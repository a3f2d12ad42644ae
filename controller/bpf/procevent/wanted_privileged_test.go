// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package procevent

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/testing/asuser"
	"github.com/attune-hpc/attune/internal/testing/files"
)

// Who is found by what they execute, and what is known of them at once.
func TestWantedNames(t *testing.T) {
	dir := asuser.Folder(t)
	program := mustCopyOf(t, "/bin/true", filepath.Join(dir, "attune-wanted"))
	link := filepath.Join(dir, "link-of-wanted")
	if err := os.Symlink(program, link); err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(dir, "script.sh")
	files.Write(t, script, "#!/bin/sh\nexit 0\n", 0o755)
	tests := []struct {
		name, start string
		want        []Name
		uid         uint32
		found       bool
	}{
		{"by name", program, []Name{{Text: "attune-wanted", UID: AnyUser}}, 0, true},
		{"by beginning", program, []Name{{Text: "attune-wa", Beginning: true, UID: AnyUser}}, 0, true},
		{"a beginning is no name", program, []Name{{Text: "attune-wa", UID: AnyUser}}, 0, false},
		{"another name", program, []Name{{Text: "attune-other", UID: AnyUser}}, 0, false},
		{"the name of a link's file", link, []Name{{Text: "attune-wanted", UID: AnyUser}}, 0, true},
		{"the name of a link", link, []Name{{Text: "link-of-wanted", UID: AnyUser}}, 0, true},
		{"a script", script, []Name{{Text: "script.sh", UID: AnyUser}}, 0, true},
		{"of the user", program, []Name{{Text: "attune-wanted", UID: 4711}}, 4711, true},
		{"of another user", program, []Name{{Text: "attune-wanted", UID: 4711}}, 0, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := mustProcessEvents(t, Options{NodeWide: true})
			if err := p.Want(test.want); err != nil {
				t.Fatal(err)
			}
			command := exec.Command(test.start, "one", "two")
			command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: test.uid}}
			if err := command.Run(); err != nil {
				t.Fatal(err)
			}
			events := mustDrain(t, p)
			if !test.found {
				if len(events) != 0 {
					t.Errorf("found %+v", events)
				}
				return
			}
			if len(events) != 1 || events[0].Program == nil {
				t.Fatalf("events %+v, want one exec", events)
			}
			checkProgram(t, events[0], command, test.uid)
		})
	}
}

func checkProgram(t *testing.T, e Event, command *exec.Cmd, uid uint32) {
	t.Helper()
	if e.Kind != EventExec || e.Member || e.PID != command.Process.Pid || e.UID != uid {
		t.Errorf("event %+v", e)
	}
	if e.Program.StartedAs != command.Path {
		t.Errorf("started as %q, want %q", e.Program.StartedAs, command.Path)
	}
	words := strings.Split(string(e.Program.Arguments), "\x00")
	if len(words) < 3 || words[len(words)-3] != "one" || words[len(words)-2] != "two" {
		t.Errorf("arguments %q", words)
	}
	var st unix.Stat_t
	if err := unix.Stat(command.Path, &st); err != nil {
		t.Fatal(err)
	}
	if filepath.Ext(command.Path) != ".sh" && (e.Program.Inode != st.Ino || e.Program.Device != st.Dev) {
		t.Errorf("file %d:%d, want %d:%d", e.Program.Device, e.Program.Inode, st.Dev, st.Ino)
	}
}

func mustCopyOf(t *testing.T, from, to string) string {
	t.Helper()
	data := files.Read(t, from)
	files.Write(t, to, data, 0o755)
	return to
}

// A name that stays wanted is not missed while others come and go, and one that
// is not wanted any more is not found.
func TestWantAgain(t *testing.T) {
	p := mustProcessEvents(t, Options{NodeWide: true})
	want := func(names ...string) {
		t.Helper()
		var list []Name
		for _, name := range names {
			list = append(list, Name{Text: name, UID: AnyUser})
		}
		if err := p.Want(list); err != nil {
			t.Fatal(err)
		}
	}
	// Names that nobody else on this node executes.
	dir := t.TempDir()
	kept := mustCopyOf(t, "/bin/true", filepath.Join(dir, "attune-kept"))
	left := mustCopyOf(t, "/bin/true", filepath.Join(dir, "attune-left"))
	want("attune-kept", "attune-left")
	want("attune-kept", "attune-other")
	for _, program := range []string{left, kept} {
		if err := exec.Command(program).Run(); err != nil {
			t.Fatal(err)
		}
	}
	if events := mustDrain(t, p); len(events) != 1 || events[0].Command != "attune-kept" {
		t.Errorf("events %+v, want that of attune-kept", events)
	}
}
