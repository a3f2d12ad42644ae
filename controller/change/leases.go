// SPDX-License-Identifier: Apache-2.0

package change

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

const (
	// maxLease bounds what an Analyzer may ask for.
	maxLease = time.Hour
	// longestLook is how much of a lease the time between two looks uses up at most. They are a
	// second apart. What is beyond the controller stood still (stopped, frozen, or without CPU
	// time), and heard nobody, however often the Analyzer renewed.
	longestLook = 2 * time.Second
)

// leases says until when changes stay in force without word from the Analyzer.
type leases struct {
	standard time.Duration

	mu     sync.Mutex // guards what follows; a leaf lock
	until  map[string]lease
	lost   uint64    // how many connections were
	looked time.Time // when the leases were looked at last
}

type lease struct {
	length time.Duration
	proven time.Duration // the length instead while the change is proven good; 0: it is not
	ends   time.Time
	owed   bool // to be undone, whatever the Analyzer says from now on
	// overridden is what somebody else has changed, for which it is to be undone; empty:
	// nothing.
	overridden string
	// unnamed: its connection was lost, and the Analyzer has not said since that
	// it stays.
	unnamed bool
}

func newLeases(standard time.Duration) *leases {
	return &leases{standard: standard, until: make(map[string]lease)}
}

// begin starts a lease anew.
func (l lease) begin(now time.Time) lease {
	l.ends = now.Add(min(cmp.Or(l.proven, l.length), maxLease))
	return l
}

// sitOut lengthens the leases by what time the controller has stood still since the last look,
// but none beyond one that begins now: an Analyzer that has gone meanwhile has its changes
// undone in time.
func (l *leases) sitOut(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	still := now.Sub(l.looked) - longestLook
	if !l.looked.IsZero() && still > 0 {
		for change, one := range l.until {
			later := one.ends.Add(still)
			if one = one.begin(now); later.Before(one.ends) {
				one.ends = later
			}
			l.until[change] = one
		}
	}
	l.looked = now
}

// connection numbers the present connection.
func (l *leases) connection() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost
}

// add starts the lease of a change, which was asked for by a connection; length 0
// means the standard one.
func (l *leases) add(change string, length time.Duration, connection uint64, now time.Time) {
	if length <= 0 {
		length = l.standard
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until[change] = lease{length: length, unnamed: connection != l.lost}.begin(now)
}

// orphan notes that the connection was lost: what is in force is renewed only
// when it is named.
func (l *leases) orphan() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost++
	for change, one := range l.until {
		one.unnamed = true
		l.until[change] = one
	}
}

// renew starts leases anew: those that are named, or with none all that have
// not to be.
func (l *leases) renew(named []string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for change, one := range l.until {
		meant := slices.Contains(named, change) || len(named) == 0 && !one.unnamed
		if meant && !one.owed {
			one.unnamed = false
			l.until[change] = one.begin(now)
		}
	}
}

// prove gives changes that are proven good, and no others, leases of a length.
func (l *leases) prove(proven []string, length time.Duration, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for change, one := range l.until {
		was := one.proven
		one.proven = 0
		if slices.Contains(proven, change) {
			one.proven = max(length, 0)
		}
		if one.proven != was && !one.owed {
			l.until[change] = one.begin(now)
		}
	}
}

// proven returns the leases of the changes that are proven good and have not ended.
func (l *leases) proven(now time.Time) map[string]time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make(map[string]time.Duration)
	for change, one := range l.until {
		if one.proven > 0 && !one.owed && now.Before(one.ends) {
			all[change] = one.proven
		}
	}
	return all
}

// take starts the lease of a change that was taken over, proven good, which the Analyzer
// has to name to renew it.
func (l *leases) take(change string, proven time.Duration, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until[change] = lease{length: l.standard, proven: max(proven, 0), unnamed: true}.begin(now)
}

// owe says that a change is about to be undone. If that fails its lease ends once more, even
// if the Analyzer renews all others. The lease of one that was owed before runs on: however
// often it is owed, it is tried again.
func (l *leases) owe(change string, now time.Time) { l.yield(change, "", now) }

// yield is owe for a change of which somebody else has changed something, and reports whether
// it was not owed before.
func (l *leases) yield(change, overridden string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.until[change].owed {
		return false
	}
	l.until[change] = lease{length: l.standard, owed: true, overridden: overridden}.begin(now)
	return true
}

// owes says whether a change is to be undone.
func (l *leases) owes(change string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.until[change].owed
}

// overridden is what somebody else has changed, of those of some changes that are owed for that.
func (l *leases) overridden(changes []string) map[string]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make(map[string]string)
	for _, change := range changes {
		if reason := l.until[change].overridden; reason != "" {
			all[change] = reason
		}
	}
	return all
}

// expired returns the changes whose lease has ended, in the order in which
// inForce lists them, which is that to undo them in, and drops the leases of
// changes that are not in force any more. Each comes again after the standard
// lease for as long as it stays in force.
func (l *leases) expired(now time.Time, inForce func() []string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	kept := make(map[string]lease)
	for _, change := range inForce() { // after the lock: a lease begins when its change is in force
		one, ok := l.until[change]
		if !ok {
			continue // begins in a moment
		}
		if now.After(one.ends) {
			out = append(out, change)
			one = lease{length: l.standard, owed: true, overridden: one.overridden}.begin(now)
		}
		kept[change] = one
	}
	l.until = kept
	return out
}
