// SPDX-License-Identifier: Apache-2.0

package core

import (
	"fmt"
	"strings"
	"testing"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// lined makes a proposal of a change in a process, in a state.
func lined(id string, state State, process uint64) *proposal {
	return &proposal{
		tunlet: &tunlet{name: "of " + id}, advice: id, spec: &attunev1.Proposal{Id: id}, state: state,
		changes: changes{{spec: &attunev1.Change{Id: "c" + id, Knob: "k", Process: process}}},
	}
}

// What is known to help goes before all that waits and is not, and before nothing else.
func TestLineOrder(t *testing.T) {
	l := &line{known: knowledge{"good": {Kept: 1}, "better": {Kept: 2}}}
	l.join(lined("kept", StateKept, 1))
	for _, id := range []string{"first", "second", "good", "better"} {
		l.enqueue(lined(id, StateWaiting, 2))
	}
	var order []string
	for _, p := range l.snapshot() {
		order = append(order, p.advice)
	}
	if got, want := strings.Join(order, " "), "kept good better first second"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// A proposal waits for experiments on its processes, and for what stands before it.
func TestLineBlocks(t *testing.T) {
	tests := []struct {
		name          string
		before, after *proposal
		want          bool
	}{
		{"nobody", nil, nil, false},
		{"one before it that waits", lined("b", StateWaiting, 1), nil, true},
		{"one before it about another process", lined("b", StateWaiting, 2), nil, false},
		{"one before it that was kept", lined("b", StateKept, 1), nil, false},
		{"one before it that is judged", lined("b", StateJudging, 1), nil, true},
		{"one after it that waits", nil, lined("a", StateWaiting, 1), false},
		{"one after it that is undone", nil, lined("a", StateUndoing, 1), true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l, p := &line{}, lined("p", StateWaiting, 1)
			for _, q := range []*proposal{tt.before, p, tt.after} {
				if q != nil {
					l.join(q)
				}
			}
			if got := l.blocks(p); got != tt.want {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}

// The archive forgets what finished first, and by all its names.
func TestArchiveForgets(t *testing.T) {
	var seen views
	a := newArchive("x", &seen)
	var all []*proposal
	for n := range maxFinished + 2 {
		p := lined(fmt.Sprint(n), StateUndone, 1)
		a.numberChanges(p)
		a.add(p)
		all = append(all, seen.touch(p))
	}
	for _, p := range all {
		a.finish(p)
	}
	_, forgotten := seen.changed()
	if len(forgotten) != 2 || forgotten[0] != 1 || forgotten[1] != 2 || seen.lost != 2 {
		t.Errorf("forgotten %v, %d, want the first two", forgotten, seen.lost)
	}
	for n, p := range all[:3] {
		known := a.find(p.tunlet.name, p.spec.GetId()) != nil
		if change := a.changes[p.changes[0].spec.GetId()] != nil; known != (n == 2) || change != known {
			t.Errorf("proposal %d is known: %v, its change: %v", n, known, change)
		}
	}
	a.revive(all[2])
	if len(a.finished) != maxFinished-1 {
		t.Errorf("%d are finished, want %d: one has been revived", len(a.finished), maxFinished-1)
	}
}
