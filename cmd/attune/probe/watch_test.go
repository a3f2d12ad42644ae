// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"io"
	"testing"
	"time"

	"github.com/attune-hpc/attune/cmd/attune/probe/probeview"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestWatchGivesUp: only where no point can be placed in what was asked for. Who executes
// another program, or forks what does, may go on to be measured.
func TestWatchGivesUp(t *testing.T) {
	const parent, child = 7, 8
	placed, refused := attunev1.PointState_POINT_STATE_PLACED, attunev1.PointState_POINT_STATE_REFUSED
	type told struct {
		pid   int32
		state attunev1.PointState
	}
	for name, row := range map[string]struct {
		told    []told
		givesUp bool
	}{
		"refused":                              {[]told{{parent, refused}}, true},
		"placed":                               {[]told{{parent, placed}}, false},
		"placed, then executes":                {[]told{{parent, placed}, {parent, refused}}, false},
		"placed, and a child executes":         {[]told{{parent, placed}, {child, refused}}, false},
		"not yet placed, and a child executes": {[]told{{child, refused}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			events := make(chan seen, len(row.told))
			for _, at := range row.told {
				events <- seen{0, &attunev1.WatchProbesResponse{Event: &attunev1.WatchProbesResponse_Probe{Probe: &attunev1.Probe{
					Text: "a:f", Pid: at.pid, Number: uint32(at.pid), Status: &attunev1.PointStatus{Point: 3, State: at.state},
				}}}}
			}
			close(events)
			gaveUp := false
			printer := probeview.New(probeview.Options{Output: io.Discard, Notes: io.Discard, Pids: []int32{parent}})
			printAll(printer, events, time.Hour, nil, 1, func() { gaveUp = true })
			if gaveUp != row.givesUp {
				t.Errorf("gives up: %v, want %v", gaveUp, row.givesUp)
			}
		})
	}
}
