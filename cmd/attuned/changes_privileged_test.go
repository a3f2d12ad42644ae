// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// as runs attune as a user who asks this site's attuned.
func (s *site) as(uid uint32, args ...string) []byte {
	s.t.Helper()
	home := s.path("home-" + strconv.FormatUint(uint64(uid), 10))
	if err := errors.Join(os.MkdirAll(home, 0o700), os.Chown(home, int(uid), int(uid))); err != nil {
		s.t.Fatal(err)
	}
	command := exec.Command(attune, args...)
	command.Env = append(os.Environ(), "ATTUNED_RUN_DIR="+s.path("run"), "HOME="+home, "XDG_STATE_HOME=")
	command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	out, err := command.Output()
	if err != nil {
		s.t.Fatalf("attune %v: %v, %s", args, err, out)
	}
	return out
}

// changed lists what a user sees changed: id and old and new value by process.
func (s *site) changed(uid uint32) map[int]string {
	s.t.Helper()
	var all []actuate.InForce
	if err := json.Unmarshal(s.as(uid, "changes", "--json"), &all); err != nil {
		s.t.Fatal(err)
	}
	seen := make(map[int]string)
	for _, c := range all {
		if c.By == "attuned" {
			seen[c.PID] = strings.Join([]string{c.Registration, c.ID, c.Old, c.New}, " ")
		}
	}
	return seen
}

// attune changes and attune ps show what the service has changed: users their own
// processes, root all of them; nothing when it was undone.
func TestChangesOfTheServiceAreShown(t *testing.T) {
	s := mustSiteOnly(t)
	a := &scripted{}
	serveScript(t, a, s.path("a.sock"))
	daemon := s.attuned()
	tuned := map[uint32]*targets.Target{}
	for uid, name := range map[uint32]string{0: "roots", nobody: "users"} {
		program := s.worker(name)
		command := exec.Command(program)
		command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		c := a.reset()
		tuned[uid] = targets.StartCommand(t, command)
		s.register(name, program, "tune")
		c.requests <- setKnob(name+"-1", patience.Receive(t, "the process", c.processes).GetHandle())
		checkChanged(t, c, tuned[uid])
	}
	users, roots := "users users-1 7 8", "roots roots-1 7 8"
	patience.Until(t, "all sessions to answer in time", func() bool {
		got := s.changed(0)
		return got[tuned[nobody].PID] == users && got[tuned[0].PID] == roots
	})
	if got := s.changed(nobody); len(got) != 1 || got[tuned[nobody].PID] != users {
		t.Errorf("the user sees %v, want %s", got, users)
	}
	if table := string(s.as(nobody, "changes")); !strings.Contains(table, "session users") || strings.Contains(table, "roots") {
		t.Errorf("the user's table:\n%s", table)
	}
	listed := 0
	for line := range strings.Lines(string(s.as(nobody, "ps"))) {
		words := strings.Fields(line)
		if len(words) < 5 || words[0] != strconv.Itoa(tuned[nobody].PID) {
			continue
		}
		listed++
		if words[4] != "knob" {
			t.Errorf("ps says nothing of the change: %q", line)
		}
	}
	if listed != 1 {
		t.Errorf("ps lists the process %d times", listed)
	}
	s.stop(daemon)
	if got := s.changed(nobody); len(got) != 0 {
		t.Errorf("without the service the user sees %v", got)
	}
	for _, target := range tuned {
		checkUnharmed(t, target)
	}
}
