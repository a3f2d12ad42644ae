// SPDX-License-Identifier: Apache-2.0

package session

import (
	"google.golang.org/protobuf/proto"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// losses are what the sinks know of what was lost here.
type losses struct {
	analyzer uint64
	told     map[string]uint64 // events not delivered, by tunlet
	before   map[string]uint64 // those of earlier instances
}

// emitLosses tells what has been lost in the Analyzer since it was told last.
func (s *Session) emitLosses() {
	var lost *attunev1.RecordedLosses
	if n := s.lost.Load(); n != s.lossesTold.analyzer {
		s.lossesTold.analyzer = n
		lost = &attunev1.RecordedLosses{}
	}
	for name, before := range s.lossesTold.before {
		n := before
		if t := s.tunlets[name]; t != nil {
			n += t.worker.lost()
		}
		if n == s.lossesTold.told[name] {
			continue
		}
		s.lossesTold.told[name] = n
		if lost == nil {
			lost = &attunev1.RecordedLosses{}
		}
		lost.Tunlets = append(lost.Tunlets, &attunev1.TunletLoss{Tunlet: name, Events: n})
	}
	if lost != nil {
		lost.Analyzer = s.lossesTold.analyzer
		s.emit(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Losses{Losses: lost}})
	}
}

// addLosses notes what a controller's events tell of losses.
func (s *Session) addLosses(c *controller, lost *attunev1.ControllerStatus) {
	if proto.Size(lost) == 0 {
		return
	}
	c.addLosses(lost)
	s.emitStatus(c.id, c.account())
}
