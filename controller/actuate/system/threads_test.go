// SPDX-License-Identifier: Apache-2.0

package system

import (
	"slices"
	"strings"
	"testing"
)

// values reads a knob of all threads.
func (k *keeper) values(t *testing.T, name string) []string {
	t.Helper()
	target, err := Open(k.identity)
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	threads, err := target.threads()
	if err != nil {
		t.Fatal(err)
	}
	found, err := find(name)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, place := range threads {
		value, err := found.read(target, place)
		if err == nil {
			all = append(all, value)
		}
	}
	return all
}

// Threads that are created while all are changed, or later, are changed and
// restored like those that were there.
func TestThreadsComeAndGo(t *testing.T) {
	k := mustKeeper(t)
	k.Ask(t, "storm 1")
	_, states := k.change(t, "thread.policy", "batch", Everywhere)
	for _, got := range k.values(t, "thread.policy") {
		if got != "batch" {
			t.Errorf("a thread has %s", got)
		}
	}
	k.Ask(t, "spawn 20")
	k.restore(t, states)
	k.Ask(t, "storm 0")
	values := k.values(t, "thread.policy")
	if slices.Contains(values, "batch") || len(values) < 24 {
		t.Errorf("after restoring: %v", values)
	}
}

// One thread is one thread.
func TestOneThread(t *testing.T) {
	k := mustKeeper(t)
	_, states := k.change(t, "thread.policy", "batch", k.PID)
	if got := k.values(t, "thread.policy"); strings.Join(got, " ") != "batch other other other" {
		t.Errorf("%v", got)
	}
	k.Ask(t, "spawn 3") // by that thread
	if got := k.values(t, "thread.policy"); strings.Join(got, " ") != "batch other other other batch batch batch" {
		t.Errorf("%v", got)
	}
	k.restore(t, states)
	if got := k.values(t, "thread.policy"); slices.Contains(got, "batch") {
		t.Errorf("%v", got)
	}
}

func TestManyThreads(t *testing.T) {
	k := mustKeeper(t)
	k.Ask(t, "spawn 2000")
	_, states := k.change(t, "thread.affinity", "0", Everywhere)
	if got := k.values(t, "thread.affinity"); len(got) < 2000 || slices.ContainsFunc(got, func(s string) bool { return s != "0" }) {
		t.Errorf("%d threads, not all on CPU 0", len(got))
	}
	k.restore(t, states)
}
