// SPDX-License-Identifier: Apache-2.0

package accountant

// growth is by how much the resident memory must have grown before it is asked again what
// of it is shared, as a divisor.
const growth = 20

// sharing asks again and again what of the memory is shared, for which the kernel walks all
// pages.
type sharing struct {
	asker asker[question]
	// What follows is the asker's until its end.
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
	s := &sharing{peaks: make(map[string]peak)}
	s.asker = newAsker(0, s.answer)
	return s
}

// answer looks when there is more resident memory than when it was last asked.
func (s *sharing) answer(q question) {
	if q.resident <= s.asked+s.asked/growth {
		return
	}
	if pss, swapped, known := proportional(q.alive); known {
		s.asked = q.resident
		s.keep("memory.proportional_peak_bytes", pss, q.seconds)
		s.keep("memory.swap_peak_bytes", swapped, q.seconds)
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
	s.asker.end()
	return s.peaks, s.asked
}
