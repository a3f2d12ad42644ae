// SPDX-License-Identifier: Apache-2.0

package nagle

import (
	"fmt"

	"github.com/attune-hpc/attune/tunlets/kit/connections"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

const (
	// mostExchanges per second are possible with a stall in each: the least delay
	// of an acknowledgement is 40 ms (TCP_DELACK_MIN, HZ/25), with a jiffy of
	// 1 to 10 ms more. Measured: 22.6 to 24 per second.
	mostExchanges = 26
	// leastExchanges per second; fewer are worth little, or wait for something
	// else.
	leastExchanges = 4
	// leastSleeps is the voluntary switches per second of a process with one
	// stalled connection: one in each exchange.
	leastSleeps = 15
	// leastHeld is the part of the readings in which a segment is held. With
	// 40 ms of 43 it is 0.93.
	leastHeld = 0.5
	// leastRest is the least that an exchange takes, in seconds, on whatever
	// connection: two wake-ups. Measured, loopback: 30 to 60 µs.
	leastRest = 30e-6
	// leastGain is the predicted gain from which a change is worth a try.
	leastGain = 1.05
)

// held says that Nagle's algorithm holds data: less than a segment is unsent,
// although the windows would let it through, because something is not
// acknowledged (RFC 896; RFC 1122, 4.2.3.4).
func held(d *sdk.SocketDetail) bool {
	t := d.TCP
	return !t.NoDelay && t.UnsentBytes > 0 && t.UnsentBytes < t.SegmentBytes && t.UnackedSegments > 0 && t.UnackedSegments < t.WindowSegments
}

// judge says what cures a connection on which segments are held most of the time,
// and exchanges go on at the pace of delayed acknowledgements.
//
// The measured model is gain = (40 ms + rtt) / rtt. Own derivation: an exchange
// takes T now; what remains of it without the stall is a round trip, and the work
// of this process for it, taken from its CPU time. So gain = T / (rtt + work).
// The peer's work is not known, which is why the figure is an upper bound where
// that is the slower one.
func judge(l connections.Load, f *connections.Flow) (connections.Cure, bool) {
	exchanges := min(f.ReceivedRate(), f.SentRate())
	if f.MarkedShare() < leastHeld || exchanges < leastExchanges || exchanges > mostExchanges || l.Exchanges <= 0 {
		return connections.Cure{}, false
	}
	work := (l.CPU + l.Wait) / max(l.Exchanges, exchanges)
	rest := max(leastRest, f.Latest.TCP.MinRTT.Seconds()+work)
	gain := 1 / (exchanges * rest)
	if gain < leastGain {
		return connections.Cure{}, false
	}
	return connections.Cure{
		Knob: knob, Value: sdk.Bool(true), Gain: gain,
		Reason: fmt.Sprintf("makes %.0f exchanges/s and holds less than a segment behind an unacknowledged one %.0f %% of the time (round trip %v)",
			exchanges, 100*f.MarkedShare(), f.Latest.TCP.MinRTT),
	}, true
}
