// SPDX-License-Identifier: Apache-2.0

package congestion

import (
	"fmt"
	"time"

	"github.com/attune-hpc/attune/tunlets/kit/connections"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

const (
	// leastRate is bytes per second of what counts as bulk.
	leastRate = 100e6
	// leastBusy is the part of the time in which there is something to send.
	leastBusy = 0.8
	// shortPath is the round trip within a machine or a rack. Where it takes
	// longer, a model of the path is worth having.
	shortPath = 500 * time.Microsecond
	// leastLoss is the part of segments sent again from which on loss matters to a
	// congestion control.
	leastLoss = 1e-3
	// pacingGain is what CUBIC gains over BBR on a short path without loss: about
	// the middle of what was measured on the loopback, 1.2 to 3.5. No model of it
	// from outside is known: it depends on timers and on who has the CPU.
	pacingGain = 2
)

// paces says that a congestion control sends by a clock, at the rate that its
// model of the path gives.
func paces(name string) bool { return name == "bbr" || name == "bbr2" || name == "bbr3" }

// judge says what cures a bulk connection on a short path whose congestion control
// paces. Each segment then waits for a timer instead of for the peer
// (Cardwell et al., BBR: Congestion-Based Congestion Control, 2016: made for
// bottlenecks and long paths).
func judge(_ connections.Load, f *connections.Flow) (connections.Cure, bool) {
	t := f.Latest.TCP
	if !paces(t.Congestion) || f.Rate() < leastRate || f.BusyShare() < leastBusy ||
		t.MinRTT > shortPath || f.ResentShare() > leastLoss {
		return connections.Cure{}, false
	}
	return connections.Cure{
		Knob: knob, Value: sdk.Text("cubic"), Gain: pacingGain,
		Reason: fmt.Sprintf("sends %.0f MB/s paced by %s over a path of %v on which nothing is lost",
			f.Rate()/1e6, t.Congestion, t.MinRTT),
	}, true
}
