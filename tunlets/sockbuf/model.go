// SPDX-License-Identifier: Apache-2.0

package sockbuf

import (
	"fmt"

	"github.com/attune-hpc/attune/tunlets/kit/connections"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

const (
	// leastSleeps is the voluntary switches per second of a process that fills a
	// buffer of the least rate below again and again.
	leastSleeps = 50
	// leastLimited is the part of the readings in which the buffer is what the
	// connection waits for.
	leastLimited = 0.5
	// leastRate in bytes per second: below, a program that writes now and then
	// would count.
	leastRate = 256 << 10
	// leastIdle is the part of the time that the sender must wait: without waiting
	// a larger buffer brings nothing.
	leastIdle = 0.2
	// leastGain is the predicted gain from which a change is worth a try.
	leastGain = 1.05
)

// limited says that the program's own choice of a size is what a connection waits
// for: the buffer is full, and all that is in it is on its way, within both
// windows. A connection that waits for the network has data that is not sent yet
// (tcp_info.tcpi_notsent_bytes).
//
// tcp_info.tcpi_sndbuf_limited is not used: it only counts time with an empty
// write queue, and showed 3 % where the buffer cost two thirds of the throughput
// (socat, 16 KiB).
func limited(d *sdk.SocketDetail) bool {
	t := d.TCP
	return d.SendBufferSet && 2*d.SendQueuedBytes >= d.SendBufferBytes && t.UnsentBytes <= t.SegmentBytes && t.UnackedSegments < t.WindowSegments
}

// judge says what cures a connection that its send buffer holds up.
//
// Own derivation of the gain: a sender that need not wait for room goes as fast as
// its CPU time lets it, 1 / (run + run-queue wait), or as the congestion window
// lets it, window / least rtt, whichever is less. Both are upper bounds: the
// receiver's work is not known. The smoothed rtt has the delays of
// acknowledgements in it that a full buffer leads to.
func judge(l connections.Load, f *connections.Flow) (connections.Cure, bool) {
	t := f.Latest.TCP
	busy := l.CPU + l.Wait
	if f.MarkedShare() < leastLimited || f.Rate() < leastRate || busy > 1-leastIdle || f.PeerLimitedShare() > leastLimited {
		return connections.Cure{}, false
	}
	gain := 1 / max(busy, 1e-3)
	if t.MinRTT > 0 {
		gain = min(gain, float64(t.WindowSegments)*float64(t.SegmentBytes)/t.MinRTT.Seconds()/f.Rate())
	}
	if gain < leastGain {
		return connections.Cure{}, false
	}
	return connections.Cure{
		Knob: knob, Value: sdk.Text("auto"), Gain: gain,
		Reason: fmt.Sprintf("sends %.1f MB/s through a buffer of %d bytes that the program has set; it is full, and all in it on its way, %.0f %% of the time",
			f.Rate()/1e6, f.Latest.SendBufferBytes/2, 100*f.MarkedShare()),
	}, true
}
