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

// Nor is it put off by being owed again, as at each look at what others have changed.
func TestOwedUndoIsNotPutOff(t *testing.T) {
	now := time.Unix(1000, 0)
	l := newLeases(10 * time.Second)
	for second := range 20 {
		l.owe("a", now.Add(time.Duration(second)*time.Second))
	}
	if got := l.expired(now.Add(11*time.Second), func() []string { return []string{"a"} }); !slices.Equal(got, []string{"a"}) {
		t.Errorf("expired %v", got)
	}
}

// A change that is proven good outlives a silent Analyzer for longer, until it is on
// trial again; for no longer than an hour, whatever the Analyzer says.
func TestProvenLease(t *testing.T) {
	now := time.Unix(1000, 0)
	ends := func(l *leases, change string) time.Duration { return l.until[change].ends.Sub(now) }
	l := newLeases(10 * time.Second)
	for _, id := range []string{"good", "tried", "owed"} {
		l.add(id, 30*time.Second, l.connection(), now)
	}
	l.owe("owed", now)
	l.prove([]string{"good", "owed", "unknown"}, 5*time.Minute, now)
	if good, tried, owed := ends(l, "good"), ends(l, "tried"), ends(l, "owed"); good != 5*time.Minute || tried != 30*time.Second || owed != 10*time.Second {
		t.Errorf("leases end after %v, %v, %v", good, tried, owed)
	}
	l.orphan()
	l.renew([]string{"good"}, now.Add(time.Minute))
	if good := ends(l, "good"); good != 6*time.Minute {
		t.Errorf("renewed, the lease ends after %v", good)
	}
	l.prove([]string{"good"}, 5*time.Minute, now.Add(2*time.Minute)) // said again, which renews nothing
	if good := ends(l, "good"); good != 6*time.Minute {
		t.Errorf("proven again, the lease ends after %v", good)
	}
	l.prove(nil, 5*time.Minute, now.Add(time.Minute))
	if good := ends(l, "good"); good != 90*time.Second {
		t.Errorf("on trial again, the lease ends after %v", good)
	}
	l.prove([]string{"good"}, 1000*time.Hour, now)
	if good := ends(l, "good"); good != maxLease {
		t.Errorf("the lease ends after %v, at most %v", good, maxLease)
	}
	if len(l.until) != 3 {
		t.Errorf("leases %v", l.until)
	}
}
