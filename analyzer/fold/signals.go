// SPDX-License-Identifier: Apache-2.0

package fold

import (
	"github.com/attune-hpc/attune/proto/attune/series"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// signals add up what is sampled of the session's processes.
type signals struct {
	used [series.SignalSize]uint64
	of   map[uint64]*sampled // by the handles of those that run
}

// sampled is what was read last of a process.
type sampled struct {
	latest [series.SignalSize]uint64
	known  [series.SignalSize]bool
}

// take takes one sample. What a process had used before the first of them was not used
// under control.
func (s *signals) take(sample *attunev1.Sample) {
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
		}
		p.latest[id], p.known[id] = value, true
	}
}

// gone forgets a process that has ended.
func (s *signals) gone(handle uint64) { delete(s.of, handle) }
