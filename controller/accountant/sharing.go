// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"runtime"
	"time"

	"github.com/attune-hpc/attune/internal/clock"
)

const (
	// sharedShare is what part of the time may be spent with asking what memory is shared, as
	// a divisor.
	sharedShare = 20
	// growth is by how much the resident memory must have grown before it is asked
	// again what of it is shared, as a divisor.
	growth = 20
)

// sharing asks again and again what of the memory is shared, beside the sampler: that
// takes the kernel long, which walks all pages, and nobody may wait for it who has
// limits to see to.
type sharing struct {
	questions chan question
	answered  chan struct{} // closed when the last question was answered
	// What follows is for run until answered is closed.
	peaks map[string]peak
	asked uint64 // most resident memory of which it was asked, bytes
}

// question is whether there is more shared memory than before, as of a reading.
type question struct {
	alive    []living
	resident uint64
	seconds  float64
}

// peak is the most that there was of something, and when.
type peak struct {
	value   uint64
	seconds float64
}

func newSharing() *sharing {
	s := &sharing{questions: make(chan question), answered: make(chan struct{}), peaks: make(map[string]peak)}
	go s.run()
	return s
}

// ask asks, unless the last question has no answer yet.
func (s *sharing) ask(q question) {
	select {
	case s.questions <- q:
	default:
	}
}

// run answers when there is more resident memory than when it was last asked, as seldom
// as its share of the time needs.
func (s *sharing) run() {
	defer close(s.answered)
	runtime.LockOSThread() // for its CPU time
	defer runtime.UnlockOSThread()
	var again time.Time
	for q := range s.questions {
		begun, worked := time.Now(), clock.Thread()
		if q.resident <= s.asked+s.asked/growth || begun.Before(again) {
			continue
		}
		if pss, swapped, known := proportional(q.alive); known {
			s.asked = q.resident
			s.keep("memory.proportional_peak_bytes", pss, q.seconds)
			s.keep("memory.swap_peak_bytes", swapped, q.seconds)
		}
		again = begun.Add(sharedShare * (clock.Thread() - worked))
	}
}

func (s *sharing) keep(name string, value uint64, seconds float64) {
	if most, known := s.peaks[name]; !known || value > most.value {
		s.peaks[name] = peak{value, seconds}
	}
}

// end returns the peaks by field, when the last question is answered, and the most resident
// memory of which it was asked.
func (s *sharing) end() (peaks map[string]peak, asked uint64) {
	close(s.questions)
	<-s.answered
	return s.peaks, s.asked
}
