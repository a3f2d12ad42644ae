// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package uprobe

import "testing"

// TestDurationsAcrossAPause: a call whose end was not seen, because nobody watched its process
// then, is not ended by a later one that began unwatched.
func TestDurationsAcrossAPause(t *testing.T) {
	binary := mustCompile(t, "target.c")
	u := mustUprobes(t, Options{})
	target := mustStartTarget(t, binary)
	mustAttach(t, u, Spec{Path: binary, Symbols: mustSymbols(t, binary, "waits"), Point: 1, Place: atBoth})
	enter := func() {
		if answer := target.Ask(t, "waits 1"); answer != "waits" {
			t.Fatalf("target answers %q", answer)
		}
	}
	mustWatch(t, u, target.PID, 1)
	enter()
	if err := u.UnwatchProcess(target.PID, 1); err != nil {
		t.Fatal(err)
	}
	target.mustCall(t, "") // it returns
	enter()
	mustWatch(t, u, target.PID, 1)
	target.mustCall(t, "")
	if got := mustAggregate(t, u, target.PID, 1); got.Count != 0 {
		t.Errorf("%d calls ended that nobody had seen begin", got.Count)
	}
	enter()
	target.mustCall(t, "")
	if got := mustAggregate(t, u, target.PID, 1); got.Count != 1 {
		t.Errorf("%d calls that were watched, want 1", got.Count)
	}
}
