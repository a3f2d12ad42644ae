// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"fmt"
	"os"
	"testing"

	"github.com/attune-hpc/attune/controller/track"
	"github.com/attune-hpc/attune/internal/clock"
	"github.com/attune-hpc/attune/internal/procid"
)

// A process that is handed over before its fork is told stays a member; one that has its
// number later is none.
func TestForkToldLate(t *testing.T) {
	self := os.Getpid()
	stat, err := procid.ReadStat(self)
	if err != nil {
		t.Fatal(err)
	}
	fork := track.Event{Kind: track.Fork, PID: self, Parent: 1}
	for name, row := range map[string]struct {
		start   uint64
		after   bool // the fork comes after the process was added
		unknown bool // the process could not be looked at when it was added
		want    bool
	}{
		"its own, found in /proc":        {start: stat.StartTicks, want: true},
		"its own, told by the connector": {want: true},
		"another's, found in /proc":      {start: stat.StartTicks + 1},
		"another's, by the connector":    {after: true},
		"of a process unknown":           {unknown: true, after: true},
		"of a process unknown, in /proc": {unknown: true, start: stat.StartTicks},
	} {
		h := newHub()
		v := h.newView(0)
		fork.StartTicks, fork.Time = row.start, 0
		if row.start == 0 && !row.after {
			fork.Time = uint64(clock.Monotonic())
		}
		if row.unknown {
			h.join(self, member{view: v.id})
		} else if err := v.Add(self); err != nil {
			t.Fatal(err)
		}
		if row.after {
			fork.Time = uint64(clock.Monotonic())
		}
		h.event(t.Context(), event{Event: fork})
		h.event(t.Context(), event{Event: track.Event{Kind: track.Exec, PID: self, StartTicks: row.start}})
		want := ""
		if row.want {
			want = fmt.Sprintf("E%d ", self)
		}
		if got := pids(t, v); got != want {
			t.Errorf("%s: the view hears %q, want %q", name, got, want)
		}
	}
}
