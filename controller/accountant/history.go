// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"time"

	"github.com/attune-hpc/attune/internal/account"
)

// maxMoments bounds the history: when there are more, each two become one.
const maxMoments = 240

// coresWindow is the least time over which cores are averaged.
const coresWindow = 100 * time.Millisecond

// history is how it went, in spans that become longer.
type history struct {
	list  []account.Moment
	every float64 // seconds, the least of a span
	// What the current span began with, and the most memory in it.
	begin    float64
	cpu      time.Duration
	resident uint64
}

// add takes a look; every is the time that was asked for between two.
func (h *history) add(r *reading, every time.Duration) {
	h.resident = max(h.resident, r.resident)
	if h.every = max(h.every, every.Seconds(), coresWindow.Seconds()); r.seconds-h.begin < h.every {
		return
	}
	h.end(r.seconds, r.late, r.taken.cpu)
	if len(h.list) < maxMoments {
		return
	}
	for i := range maxMoments / 2 {
		h.list[i] = joined(h.list[2*i], h.list[2*i+1])
	}
	h.list = h.list[:maxMoments/2]
	h.every *= 2
}

// end ends the current span; cpu is what was taken up to late seconds after that, a share of
// which is the next span's.
func (h *history) end(seconds, late float64, cpu time.Duration) {
	if passed := seconds - h.begin; passed > 0 {
		cores := max(0, (cpu-h.cpu).Seconds()) / (passed + late)
		h.list = append(h.list, account.Moment{Seconds: seconds, Span: passed, Cores: cores, Resident: h.resident})
		h.cpu += time.Duration(cores * passed * float64(time.Second))
	}
	h.begin, h.resident = seconds, 0
}

// close ends the last span. What is too short to tell cores by goes to the one before.
func (h *history) close(seconds float64, cpu time.Duration) {
	h.end(seconds, 0, cpu)
	if last := len(h.list) - 1; last > 0 && h.list[last].Span < coresWindow.Seconds() {
		h.list = append(h.list[:last-1], joined(h.list[last-1], h.list[last]))
	}
}

// joined is one span that was two.
func joined(a, b account.Moment) account.Moment {
	span := a.Span + b.Span
	return account.Moment{
		Seconds: b.Seconds, Span: span, Cores: (a.Cores*a.Span + b.Cores*b.Span) / span, Resident: max(a.Resident, b.Resident),
	}
}
