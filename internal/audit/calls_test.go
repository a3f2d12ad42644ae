// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/authn"
	"github.com/attune-hpc/attune/internal/quota"
	waiting "github.com/attune-hpc/attune/internal/testing/patience"
)

// TestCallsOfAUser: a user's calls have a bounded number of lines, each bounded, and the
// rest is counted; others' have theirs.
func TestCallsOfAUser(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := mustOpen(t, Options{Path: path})
	const most, many, bob, ann = 10, 100, 4712, 4711
	l.calls.asked, l.calls.refused = quota.NewRate[uint32](most, time.Hour), quota.NewRate[uint32](most, time.Hour)
	long, err := json.Marshal(strings.Repeat("x", maxCall))
	if err != nil {
		t.Fatal(err)
	}
	for range many {
		for _, err := range []error{nil, errors.New("no")} {
			l.WriteCall(Call{Who: authn.OfUser(bob), UID: bob, What: "POST", Began: time.Now(), Message: long, Err: err, Refused: err != nil})
		}
	}
	l.WriteCall(Call{Who: authn.OfUser(0), UID: bob, What: "POST", Began: time.Now()}) // as root does for him
	l.WriteCall(Call{Who: authn.OfUser(ann), UID: ann, What: "POST", Began: time.Now(), Message: json.RawMessage(`"short"`), Code: "OK"})
	for range most + 1 {
		l.WriteCall(Call{Who: authn.OfUser(0), What: "POST", Began: time.Now(), Code: "OK"})
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	lines, more, calls := make(map[Event]map[uint32]int), make(map[Event]uint64), make(map[uint64]bool)
	for _, event := range []Event{Asked, Refused} {
		lines[event] = make(map[uint32]int)
	}
	for _, e := range mustRead(t, path) {
		switch {
		case e.Count > 0:
			more[e.Event] += e.Count
		case e.Event == Answered:
			if !calls[e.Call] {
				t.Errorf("answer to nothing: %+v", e)
			}
		case lines[e.Event] != nil:
			lines[e.Event][*e.Who.UID]++
			calls[e.Number] = true
			if uid := *e.Who.UID; uid == bob && (e.Message != nil || e.Bytes != len(long)) || uid == ann && string(e.Message) != `"short"` {
				t.Errorf("%+v", e)
			}
			if e.Event == Refused && e.Error != "no" {
				t.Errorf("without the reason: %+v", e)
			}
		}
	}
	if lines[Asked][bob] != most || lines[Refused][bob] != most || lines[Asked][ann] != 1 || lines[Asked][0] != most+1 {
		t.Errorf("lines: %v", lines)
	}
	if more[Asked] != many-most+1 || more[Refused] != many-most {
		t.Errorf("counted: %v", more)
	}
}

// TestCountedCallsAreTold: those without a line are told when it is time, though nobody calls again.
func TestCountedCallsAreTold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := mustOpen(t, Options{Path: path})
	const bob = 4712
	l.calls.asked = quota.NewRate[uint32](1, time.Hour)
	for range 5 {
		l.WriteCall(Call{Who: authn.OfUser(bob), UID: bob, What: "POST", Began: time.Now(), Code: "OK"})
	}
	l.mu.Lock()
	l.calls.since = time.Now().Add(-tallyPeriod)
	l.mu.Unlock()
	waiting.Until(t, "the count", func() bool {
		entries, _ := read(t, path) // a line may be on its way
		return slices.ContainsFunc(entries, func(e Entry) bool { return e.Count == 4 })
	})
}
