// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package main

import (
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/offswitch"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// The switch ends a session that has changed something, which is given back at
// once; nobody is taken until it is switched on, and then who comes is.
func TestSwitchedOff(t *testing.T) {
	s := mustSiteOnly(t)
	a := &scripted{}
	serveScript(t, a, s.path("a.sock"))
	program := s.worker("worker")
	target := targets.Start(t, program)
	s.register("r1", program, "tune")
	c := a.reset()
	daemon := s.attuned()
	process := patience.Receive(t, "the process", c.processes)
	c.requests <- setKnob("c1", process.GetHandle())
	checkChanged(t, c, target)
	off := offswitch.Switch(s.path("off"))
	if err := off.TurnOff("on trial"); err != nil {
		t.Fatal(err)
	}
	patience.Until(t, "the end of the session", func() bool { _, text := s.get("/metrics"); return strings.Contains(text, "attune_node_sessions 0\n") })
	checkUnharmed(t, target)
	late := targets.Start(t, program)
	patience.Until(t, "word of who is left alone", func() bool {
		_, text := s.get("/v1/status")
		return strings.Contains(text, "switched off on this node: on trial")
	})
	c = a.reset()
	if _, err := off.TurnOn(); err != nil {
		t.Fatal(err)
	}
	patience.Until(t, "word that it is on", func() bool { _, text := s.get("/v1/status"); return !strings.Contains(text, "switched off: ") })
	last := targets.Start(t, program)
	if process := patience.Receive(t, "who comes later", c.processes); int(process.GetIdentity().GetPid()) != last.PID {
		t.Errorf("process is %v, want %d", process, last.PID)
	}
	s.stop(daemon)
	checkUnharmed(t, late)
	checkUnharmed(t, last)
	checkSwitches(t, s.path("state/audit.jsonl"))
}

// checkSwitches checks what the audit log says.
func checkSwitches(t *testing.T, path string) {
	t.Helper()
	log := files.Read(t, path)
	for _, want := range []string{`"event":"switched","what":"off","message":{"reason":"on trial"}`, `"event":"switched","what":"on"`} {
		if !strings.Contains(string(log), want) {
			t.Errorf("the audit log lacks %s:\n%s", want, log)
		}
	}
}
