// SPDX-License-Identifier: Apache-2.0

package connections

import (
	"time"

	"github.com/attune-hpc/attune/tunlets/kit/turns"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

// established is the state of a connection that both ends may use.
const established = "established"

// Flow is one TCP connection as it was seen over some time. A zero Flow has not
// been seen.
type Flow struct {
	// First and Latest are its first and its latest reading; both have TCP.
	First, Latest sdk.SocketDetail
	// From and To are when.
	From, To time.Time
	// Readings is how many there were, and Marked how many of them looked as the
	// problem does (Problem.Mark).
	Readings, Marked int

	turn turns.Turn
	rate float64 // bytes per second between the latest two readings
}

// through is how many bytes have got through in its life, both ways.
func through(d sdk.SocketDetail) uint64 { return d.TCP.AckedBytes + d.TCP.ReceivedBytes }

// take takes a reading.
func (f *Flow) take(at time.Time, d sdk.SocketDetail, marked bool) {
	if f.Readings == 0 {
		f.First, f.From = d, at
	} else if elapsed := at.Sub(f.To); elapsed > 0 {
		f.rate = float64(through(d)-min(through(d), through(f.Latest))) / elapsed.Seconds()
	}
	f.Latest, f.To = d, at
	f.Readings++
	if marked {
		f.Marked++
	}
}

// restart begins to observe anew, with the latest reading.
func (f *Flow) restart() {
	f.First, f.From = f.Latest, f.To
	f.Readings, f.Marked = 1, 0
}

// Seconds is how long the connection was observed.
func (f *Flow) Seconds() float64 { return f.To.Sub(f.From).Seconds() }

// MarkedShare is the part of the readings, 0 to 1, that looked as the problem
// does. The first one belongs to what was observed before.
func (f *Flow) MarkedShare() float64 {
	if f.Readings < 2 {
		return 0
	}
	return min(1, float64(f.Marked)/float64(f.Readings-1))
}

// Rate is bytes per second that got through, both ways.
func (f *Flow) Rate() float64 { return f.perSecond(through(f.First), through(f.Latest)) }

// SentRate is segments with data per second that were sent.
func (f *Flow) SentRate() float64 {
	return f.perSecond(f.First.TCP.DataSegmentsSent, f.Latest.TCP.DataSegmentsSent)
}

// ReceivedRate is segments with data per second that came.
func (f *Flow) ReceivedRate() float64 {
	return f.perSecond(f.First.TCP.DataSegmentsReceived, f.Latest.TCP.DataSegmentsReceived)
}

// ResentShare is the part of the segments, 0 to 1, that had to be sent again.
func (f *Flow) ResentShare() float64 {
	sent := f.SentRate()
	if sent <= 0 {
		return 0
	}
	return min(1, f.perSecond(f.First.TCP.RetransmittedSegments, f.Latest.TCP.RetransmittedSegments)/sent)
}

// BusyShare is the part of the time, 0 to 1, with something to send.
func (f *Flow) BusyShare() float64 { return f.share(f.First.TCP.Busy, f.Latest.TCP.Busy) }

// PeerLimitedShare is the part of the time, 0 to 1, that the peer's window was
// full.
func (f *Flow) PeerLimitedShare() float64 {
	return f.share(f.First.TCP.PeerLimited, f.Latest.TCP.PeerLimited)
}

// perSecond is how much a counter rose per second.
func (f *Flow) perSecond(from, to uint64) float64 {
	if f.Seconds() <= 0 || to < from {
		return 0
	}
	return float64(to-from) / f.Seconds()
}

// share is the part of the time by which a counter of time rose.
func (f *Flow) share(from, to time.Duration) float64 {
	if f.Seconds() <= 0 {
		return 0
	}
	return max(0, min(1, (to-from).Seconds()/f.Seconds()))
}
