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
	c.lost.RecordsLostRing += lost.GetRecordsLostRing()
	c.lost.RecordsLostSlot += lost.GetRecordsLostSlot()
	c.lost.RecordsLostQueue += lost.GetRecordsLostQueue()
	c.lost.RecordsLostBpf += lost.GetRecordsLostBpf()
	s.emitStatus(c)
}

// emitStatus tells what a controller says of itself. That is newer and more complete
// than what its events have told, unless it is awaited.
func (t *teller) emitStatus(c *controller) {
	status := &attunev1.ControllerStatus{}
	if c.status != nil {
		status = proto.CloneOf(c.status)
	}
	status.RecordsLostRing = max(status.GetRecordsLostRing(), c.lost.GetRecordsLostRing())
	status.RecordsLostSlot = max(status.GetRecordsLostSlot(), c.lost.GetRecordsLostSlot())
	status.RecordsLostQueue = max(status.GetRecordsLostQueue(), c.lost.GetRecordsLostQueue())
	status.RecordsLostBpf = max(status.GetRecordsLostBpf(), c.lost.GetRecordsLostBpf())
	t.emit(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Status{
		Status: &attunev1.RecordedStatus{Controller: c.id, Status: status},
	}})
}
