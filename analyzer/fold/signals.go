// SPDX-License-Identifier: Apache-2.0

package fold

import (
	"time"

	"github.com/attune-hpc/attune/proto/attune/series"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// signals add up what is sampled of the session's processes.
type signals struct {
	used [series.SignalSize]uint64
	of   map[uint64]*sampled // by the handles of those that run
	// resident is the memory of those together as of their latest samples, peak the most
	// that there was.
	resident, peak uint64
}

// sampled is what was read last of a process.
type sampled struct {
	latest [series.SignalSize]uint64
	known  [series.SignalSize]bool
}

// take takes one sample. What a process had used before the first of them was not used
// under control.
func (s *signals) take(sample *attunev1.Sample, of *process) {
	p := s.of[sample.GetProcess()]
	if p == nil {
		p = &sampled{}
		s.of[sample.GetProcess()] = p
	}
	for id, value := range series.SignalsOf(sample) {
		if int(id) >= series.SignalSize { // of a newer controller
			continue
		}
		if p.known[id] && value > p.latest[id] && !id.Gauge() {
			s.used[id] += value - p.latest[id]
			if id == series.RunTime {
				of.cpu += time.Duration(value - p.latest[id])
			}
		}
		if id == series.ResidentBytes {
			s.resident += value - p.latest[id]
			s.peak, of.resident = max(s.peak, s.resident), max(of.resident, value)
		}
		p.latest[id], p.known[id] = value, true
	}
}

// gone forgets a process that has ended.
func (s *signals) gone(handle uint64) {
	if p := s.of[handle]; p != nil {
		s.resident -= p.latest[series.ResidentBytes]
	}
	delete(s.of, handle)
}
