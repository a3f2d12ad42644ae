// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package uprobe

import (
	"errors"
	"os"
	"testing"

	"github.com/attune-hpc/attune/internal/procid"
)

// A watch is of a process and not of its pid: who is given the pid later, while
// nobody has told of the first one's end yet, is not watched.
func TestWatchKnowsTheProcess(t *testing.T) {
	u := mustUprobes(t, Options{})
	binary := mustCompile(t, "target.c")
	target := mustStartTarget(t, binary)
	identity, err := procid.Of(target.PID)
	if err != nil {
		t.Fatal(err)
	}
	mustAttach(t, u, Spec{Path: binary, Symbols: mustSymbols(t, binary, "starts_with_push"), Point: 1})
	for _, earlier := range []uint64{identity.StartTicks - 1, identity.StartTicks + 1} {
		if err := u.Watch(Watch{PID: target.PID, StartTicks: earlier, Point: 1}); err != nil {
			t.Fatal(err)
		}
		target.mustCall(t, "push 100")
		if got := mustAggregate(t, u, target.PID, 1); got.Count != 0 {
			t.Errorf("%d hits of another process", got.Count)
		}
	}
	// The one that has the pid now takes the place of the earlier one's watch.
	for range 2 {
		mustWatch(t, u, target.PID, 1)
		target.mustCall(t, "threads:push 100")
	}
	if got := mustAggregate(t, u, target.PID, 1); got.Count != 800 {
		t.Errorf("%d hits, want 800", got.Count)
	}
}

func TestWatchOfNobody(t *testing.T) {
	u := mustUprobes(t, Options{})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	mustAttach(t, u, Spec{Path: self, Symbols: []Symbol{mustGoSymbol(t, self, goFunction)}, Point: 1})
	target := mustStartTarget(t, mustCompile(t, "target.c"))
	target.mustEnd(t)
	if err := u.Watch(Watch{PID: target.PID, Point: 1}); !errors.Is(err, procid.ErrGone) {
		t.Errorf("watched a process that is gone: %v", err)
	}
}
