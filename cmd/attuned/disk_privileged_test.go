// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package main

import (
	"os"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/smalldisk"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// The disk of the journals is full: nothing is changed that could not be undone,
// people are told, and when there is room again all goes on.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	s := mustSiteOnly(t)
	if err := os.Mkdir(s.path("state"), 0o755); err != nil {
		t.Fatal(err)
	}
	smalldisk.Mount(t, s.path("state"), "size=4m,mode=755")
	a := &scripted{}
	serveScript(t, a, s.path("a.sock"))
	program := s.worker("worker")
	target := targets.Start(t, program)
	s.register("r1", program, "tune")
	c := a.reset()
	daemon := s.attuned()
	process := patience.Receive(t, "the process", c.processes)

	makeRoom := smalldisk.Fill(t, s.path("state"))
	patience.Until(t, "word of the full disk", func() bool {
		_, text := s.get("/v1/status")
		return strings.Contains(text, "no undo journal can be written")
	})
	c.requests <- setKnob("c1", process.GetHandle())
	result := patience.Receive(t, "the answer", c.results)
	if result.GetOutcome() == attunev1.Outcome_OUTCOME_APPLIED || !strings.Contains(result.GetReason(), "journal") {
		t.Errorf("change: %v, want it refused for want of a journal", result)
	}
	if knob := target.Ask(t, "knob"); knob != knobBefore {
		t.Errorf("the knob is %s, which nobody could undo", knob)
	}

	makeRoom()
	c.requests <- setKnob("c2", process.GetHandle())
	checkChanged(t, c, target)
	s.stop(daemon)
	if knob := target.Ask(t, "knob"); knob != knobBefore {
		t.Errorf("after the end the knob is %s, want it as it was", knob)
	}
	checkUnharmed(t, target)
}
