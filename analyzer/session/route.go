// SPDX-License-Identifier: Apache-2.0

package session

import (
	"google.golang.org/protobuf/proto"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Publish takes a message of a controller's event channel, over which the
// session then rules. It returns how many records it carries. Measured data is
// dropped and counted if the session does not keep up; for news it waits.
func (s *Session) Publish(id string, m *attunev1.PublishRequest) (records uint64) {
	switch k := m.GetEvent().(type) {
	case *attunev1.PublishRequest_Records:
		return s.publishRecords(id, k.Records)
	case *attunev1.PublishRequest_Aggregates:
		n := uint64(len(k.Aggregates.GetAggregates()))
		s.postData(n, proto.Size(k.Aggregates), func() { s.routeAggregates(s.controllers.get(id), k.Aggregates) })
	case *attunev1.PublishRequest_Samples:
		n := uint64(len(k.Samples.GetSamples()))
		s.postData(n, proto.Size(k.Samples), func() { s.routeSamples(s.controllers.get(id), k.Samples) })
	default:
		s.post(func() { s.news(s.controllers.get(id), m) })
	}
	return records
}

// news handles what is never dropped.
func (s *Session) news(c *controller, m *attunev1.PublishRequest) {
	switch k := m.GetEvent().(type) {
	case *attunev1.PublishRequest_News:
		for _, one := range k.News.GetNews() {
			s.newsOfOne(c, one)
		}
	default:
		s.newsOfOne(c, m)
	}
}

// newsOfOne handles news of one process.
func (s *Session) newsOfOne(c *controller, m *attunev1.PublishRequest) {
	switch k := m.GetEvent().(type) {
	case *attunev1.PublishRequest_ProcessStarted:
		s.startProcess(c, k.ProcessStarted)
	case *attunev1.PublishRequest_ProcessChanged:
		s.startProcess(c, k.ProcessChanged)
	case *attunev1.PublishRequest_ProcessEnded:
		process := k.ProcessEnded.GetProcess()
		if before := s.dropped.take(source{c.id, process}); before > 0 {
			s.routeRecords(c, &attunev1.RecordBatch{Process: process}, before)
		}
		s.addLosses(c, &attunev1.ControllerStatus{
			RecordsLostRing: k.ProcessEnded.GetLostRing(), RecordsLostSlot: k.ProcessEnded.GetLostNoSlot(), RecordsLostBpf: k.ProcessEnded.GetLostBpf(),
		})
		if p := s.processes.byID[c.local[k.ProcessEnded.GetProcess()]]; p != nil {
			s.endProcess(p, k.ProcessEnded)
		}
	}
}

// routeAggregates hands aggregates to the tunlets that asked for their points.
func (s *Session) routeAggregates(c *controller, b *attunev1.AggregateBatch) {
	known := b.Aggregates[:0]
	for _, a := range b.GetAggregates() {
		if id, ok := c.local[a.GetProcess()]; ok {
			a.Process = id
			known = append(known, a)
			s.introduce(s.processes.byID[id])
		}
	}
	if len(known) == 0 {
		return
	}
	b.Aggregates = known
	s.emit(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Aggregates{Aggregates: b}})
	for _, t := range s.tunlets {
		if own := t.feed.Aggregates(b); own != nil {
			t.handleEvents(uint64(len(own.GetAggregates())), own)
		}
	}
}

// routeRecords hands the records of one process to the tunlets that asked for
// their points. So many were dropped before them in this Analyzer.
func (s *Session) routeRecords(c *controller, b *attunev1.RecordBatch, before uint64) {
	id, ok := c.local[b.GetProcess()]
	data := b.GetRecords()
	if !ok { // nobody can be told whose they are
		s.lost.Add(attunev1.RecordsIn(b))
		return
	}
	s.introduce(s.processes.byID[id])
	if b.GetLostQueue() > 0 {
		s.addLosses(c, &attunev1.ControllerStatus{RecordsLostQueue: b.GetLostQueue()})
	}
	lost := before + lostBefore(b)
	all := &attunev1.NamedRecords{Process: id, Records: data, Lost: lost, MonotonicToUnixNano: b.GetMonotonicToUnixNano()}
	s.emit(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Records{Records: all}})
	for _, t := range s.tunlets {
		if own, records := t.feed.Records(all); own != nil {
			t.handleRecords(records, own)
		}
	}
}

// routeSamples hands samples of the processes that they know to the tunlets that
// want them.
func (s *Session) routeSamples(c *controller, b *attunev1.SampleBatch) {
	kept := b.Samples[:0]
	for _, sm := range b.GetSamples() {
		if id, ok := c.local[sm.GetProcess()]; ok {
			sm.Process = id
			kept = append(kept, sm)
		}
	}
	b.Samples = kept
	if len(kept) > 0 {
		s.emit(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Samples{Samples: b}})
	}
	b = s.ofIntroduced(b)
	s.rouse(b)
	for _, t := range s.tunlets {
		for _, own := range t.feed.Samples(b) { // shares what passes with other tunlets
			t.handleEvents(uint64(len(own.GetSamples().GetSamples())), own)
		}
	}
	s.tickWithSamples()
}

// ofIntroduced returns the samples of processes that the tunlets know.
func (s *Session) ofIntroduced(b *attunev1.SampleBatch) *attunev1.SampleBatch {
	known := &attunev1.SampleBatch{UnixNano: b.GetUnixNano()}
	for _, sm := range b.GetSamples() {
		if p := s.processes.byID[sm.GetProcess()]; p != nil && p.introduced {
			known.Samples = append(known.Samples, sm)
		}
	}
	return known
}
