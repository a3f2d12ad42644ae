// SPDX-License-Identifier: Apache-2.0

package affinity

import (
	"cmp"
	"time"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

const (
	// leastSpan is over how long a thread is observed before it is judged.
	leastSpan = 400 * time.Millisecond
	// maxSeats bounds what is remembered of where a thread ran.
	maxSeats = 64
)

// task is one thread, observed for a while.
type task struct {
	process     *process
	first, last sdk.ThreadDetail
	from, to    time.Time
	seats       []seat
}

// seat is where a thread had run last at some time.
type seat struct {
	at  time.Time
	cpu int
}

// compare orders threads by process, and by number within it.
func (t *task) compare(o *task) int {
	return cmp.Or(cmp.Compare(t.process.handle, o.process.handle),
		cmp.Compare(t.last.TID, o.last.TID), cmp.Compare(t.last.StartTicks, o.last.StartTicks))
}

// add takes a reading.
func (t *task) add(at time.Time, d sdk.ThreadDetail) {
	if t.from.IsZero() {
		t.first, t.from = d, at
	}
	t.last, t.to = d, at
	if len(t.seats) < maxSeats {
		t.seats = append(t.seats, seat{at, int(d.LastCPU)})
	}
}

// known says whether it was observed for long enough.
func (t *task) known() bool { return t.to.Sub(t.from) >= leastSpan }

func (t *task) seconds() float64 { return t.to.Sub(t.from).Seconds() }

// run and wait are the parts of the time that it runs, and waits for a CPU.
func (t *task) run() float64  { return (t.last.Run - t.first.Run).Seconds() / t.seconds() }
func (t *task) wait() float64 { return (t.last.Wait - t.first.Wait).Seconds() / t.seconds() }

// sleeps is how often it goes to sleep per second.
func (t *task) sleeps() float64 {
	return float64(t.last.VoluntarySwitches-min(t.last.VoluntarySwitches, t.first.VoluntarySwitches)) / t.seconds()
}

// demand is what the model takes of it.
func (t *task) demand() demand {
	return demand{
		run: max(0, t.run()), wait: max(0, t.wait()),
		bound: !covers(sdk.CPUList(t.last.CPUsAllowed), t.process.usable), allowed: sdk.CPUList(t.last.CPUsAllowed),
	}
}

// apart is the part of the readings in which both were read and had run last on
// different CPUs; 0 where there are less than least.
func apart(a, b *task, least int) float64 {
	var both, different int
	for i, j := 0, 0; i < len(a.seats) && j < len(b.seats); {
		switch {
		case a.seats[i].at.Before(b.seats[j].at):
			i++
		case b.seats[j].at.Before(a.seats[i].at):
			j++
		default:
			both++
			if a.seats[i].cpu != b.seats[j].cpu {
				different++
			}
			i, j = i+1, j+1
		}
	}
	if both < least {
		return 0
	}
	return float64(different) / float64(both)
}
