// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package uprobe

import (
	"testing"

	"github.com/attune-hpc/attune/internal/testing/targets"
)

// TestReturnProbesSpareTheUnwatched: a process that maps the file and that nobody watches may
// switch stacks in the function, which a return probe there would end. Before Linux 6.10 it stands there.
func TestReturnProbesSpareTheUnwatched(t *testing.T) {
	binary := targets.Build(t, "../../testdata/fibers.c", "-O2")
	u := mustUprobes(t, Options{})
	watched, unwatched, handedOver := mustStartTarget(t, binary), mustStartTarget(t, binary), mustStartTarget(t, binary)
	spec := Spec{
		Path: binary, Symbols: mustSymbols(t, binary, "step"), Point: 1, PID: watched.PID, Place: atBoth,
		Watches: []Watch{{PID: watched.PID}, {PID: handedOver.PID}},
	}
	one := mustAttach(t, u, spec)
	symbols := mustSymbols(t, binary, "passed")
	two := mustAttach(t, u, Spec{Path: binary, Symbols: symbols, Point: 2, PID: watched.PID, Place: atExit})
	if !u.spares() {
		if !one.Everywhere() || !two.Everywhere() {
			t.Error("a return probe does not stand in all processes")
		}
		return
	}
	if one.Everywhere() || two.Everywhere() {
		t.Error("a return probe stands in all processes")
	}
	if got := unwatched.Ask(t, "10"); got != "10 passed" {
		t.Errorf("a process that nobody watches: %q", got)
	}
	handedOver.Ask(t, "10")
	if got := mustAggregate(t, u, handedOver.PID, 1); got.Count != 2*10 {
		t.Errorf("%d calls of a process that is watched from the beginning, want 20", got.Count)
	}
	one.Close()
	if len(u.attached) != 1 {
		t.Error("it stays for a process for which nobody has come to hold it")
	}
}

// spares says whether the kernel can have return probes in single processes.
func (u *Uprobes) spares() bool { return u.programs.multi && u.canBeNarrow() }
