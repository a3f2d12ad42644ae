// SPDX-License-Identifier: Apache-2.0

package change

import (
	"slices"
	"sync"
	"testing"
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// look has the changes looked at once a second between two times, and waits for what it undoes.
func (b *busy) look(from, to time.Time) {
	var undoing sync.WaitGroup
	b.options.Go = undoing.Go
	for now := from; !now.After(to); now = now.Add(time.Second) {
		b.Look(now)
		undoing.Wait()
	}
}

// The Analyzer, which may be there, hears of a change that was undone because its lease has
// ended; of one that could not be undone when it is.
func TestEndOfALeaseIsTold(t *testing.T) {
	b := mustChange(t, "undone", "busy")
	b.names = []string{"busy"}
	var told []string
	b.options.Answer = func(m *attunev1.ManageRequest) {
		r := m.GetResult()
		if r.GetOutcome() != attunev1.Outcome_OUTCOME_UNDONE || r.GetRequestId() != "" || r.GetReason() == "" {
			t.Errorf("told: %v", r)
		}
		told = append(told, r.GetChangeId())
	}
	b.leases = newLeases(10 * time.Second)
	now := time.Now()
	b.leases.add("undone", 0, b.Connection(), now)
	b.leases.add("busy", 0, b.Connection(), now)
	b.look(now, now.Add(15*time.Second))
	if want := []string{"undone"}; !slices.Equal(told, want) {
		t.Errorf("told of %q, want %q", told, want)
	}
	b.names = nil
	b.look(now.Add(16*time.Second), now.Add(25*time.Second))
	if want := []string{"undone", "busy"}; !slices.Equal(told, want) {
		t.Errorf("told of %q in the end, want %q", told, want)
	}
}

// What time the controller stood still, the Analyzer could not be heard: a lease does not end by
// it, but soon afterwards if the Analyzer stays silent, and no later than one that was just
// renewed.
func TestLeaseOutlivesAStandstill(t *testing.T) {
	const lease = 5 * time.Second
	for name, tt := range map[string]struct {
		renewed bool          // before the first look afterwards
		ends    time.Duration // after the standstill, at most
	}{
		"silent":  {false, 3 * time.Second},
		"renewed": {true, lease},
	} {
		t.Run(name, func(t *testing.T) {
			b := mustChange(t, "change")
			b.leases = newLeases(lease)
			stopped := time.Now()
			b.leases.add("change", 0, b.Connection(), stopped)
			b.look(stopped, stopped)
			goesOn := stopped.Add(time.Hour)
			if tt.renewed {
				b.leases.renew(nil, goesOn)
			}
			b.look(goesOn, goesOn.Add(2*time.Second))
			if inForce := b.InForce(); len(inForce) != 1 {
				t.Fatalf("in force after the standstill: %q", inForce)
			}
			b.look(goesOn.Add(3*time.Second), goesOn.Add(tt.ends+time.Second))
			if inForce := b.InForce(); len(inForce) != 0 {
				t.Errorf("in force without a word from the Analyzer: %q", inForce)
			}
		})
	}
}
