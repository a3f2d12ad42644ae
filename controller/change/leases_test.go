// SPDX-License-Identifier: Apache-2.0

package change

import (
	"slices"
	"testing"
	"time"
)

func TestLeases(t *testing.T) {
	now := time.Unix(1000, 0)
	force := []string{"c", "b", "a"} // latest first
	l := newLeases(10 * time.Second)
	at := func(after int, want ...string) {
		t.Helper()
		got := l.expired(now.Add(time.Duration(after)*time.Second), func() []string { return force })
		if !slices.Equal(got, want) {
			t.Errorf("expired after %d s: %v, want %v", after, got, want)
		}
	}
	l.add("a", 0, l.connection(), now)
	l.add("b", 30*time.Second, l.connection(), now)
	l.add("c", 0, l.connection(), now)
	at(10)
	at(11, "c", "a")
	at(12) // being undone
	force = []string{"b", "a"}
	at(22, "a") // could not be undone
	l.renew(nil, now.Add(25*time.Second))
	at(33, "a") // not even if the Analyzer is back
	at(50, "a")
	force = []string{"b"}
	at(54)
	at(56, "b")
	if _, kept := l.until["a"]; kept || len(l.until) != 1 {
		t.Errorf("leases %v, want that of b only", l.until)
	}
}

// An undo that the Analyzer asked for, and that failed, is tried again.
func TestOwedUndoIsNotRenewed(t *testing.T) {
	now := time.Unix(1000, 0)
	l := newLeases(10 * time.Second)
	l.add("a", time.Hour, l.connection(), now)
	l.owe("a", now)
	l.renew(nil, now.Add(9*time.Second))
	if got := l.expired(now.Add(11*time.Second), func() []string { return []string{"a"} }); !slices.Equal(got, []string{"a"}) {
		t.Errorf("expired %v", got)
	}
}
