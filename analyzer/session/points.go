// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// maxPoints bounds the points of one tunlet.
const maxPoints = 1024

// subscriber is who asked for a point, under a name of their own.
type subscriber struct {
	asker *asker
	wish  wish
}

// point is one measure point. Those who ask for the same share it.
type point struct {
	index       uint32
	key         string // what makes two points the same
	spec        *attunev1.MeasurePoint
	subscribers []subscriber
	status      map[uint64]*attunev1.PointStatus // by running process
}

// keyOf returns what makes two measure points the same: all but the name.
func keyOf(spec *attunev1.MeasurePoint) string {
	anonymous := proto.CloneOf(spec)
	anonymous.Id = ""
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(anonymous)
	if err != nil { // only for invalid UTF-8: then it is nobody else's
		return spec.String()
	}
	return string(data)
}

// requestPoint serves an asker's wish for a point.
func (s *Session) requestPoint(a *asker, w wish, spec *attunev1.MeasurePoint) {
	key := keyOf(spec)
	if old := a.points[w]; old != nil {
		if old.key == key {
			return
		}
		s.releasePoint(a, w)
	}
	p, refused := s.pointFor(a, key, spec)
	if refused != "" {
		s.refusePoint(a, w, refused)
		return
	}
	p.subscribers = append(p.subscribers, subscriber{a, w})
	a.points[w] = p
	s.emitAsk(a, w, &attunev1.RecordedAsk{Point: p.index})
	if t := a.tunlet; t != nil {
		t.feed.Add(p.index, spec)
		for _, st := range p.status {
			t.pointChanged(w.id, st)
		}
	}
}

// pointFor returns the point that an asker is to have, or why there is none.
func (s *Session) pointFor(a *asker, key string, spec *attunev1.MeasurePoint) (p *point, refused string) {
	switch {
	case spec.GetTarget() == nil:
		return nil, "the measure point has no target"
	case len(a.points) >= maxPoints:
		return nil, fmt.Sprintf("%s may have %d measure points", a.name, maxPoints)
	}
	switch p = s.points.byKey[key]; {
	case p != nil:
		return p, ""
	case s.points.bytes+weightOf(spec) > maxPointBytes:
		return nil, fmt.Sprintf("the measure points of a session may take %d MiB: remove some first, or ask for fewer", maxPointBytes>>20)
	}
	if p = s.newPoint(key, spec); p == nil {
		return nil, "no index is left for another measure point"
	}
	return p, ""
}

// refusePoint tells an asker that it does not get a point, a tunlet as long as there
// is hope that it listens.
func (s *Session) refusePoint(a *asker, w wish, reason string) {
	t := a.tunlet
	if t == nil {
		s.emitAsk(a, w, &attunev1.RecordedAsk{Refused: reason})
		return
	}
	if t.refusedPoints++; t.refusedPoints <= maxPoints {
		t.pointChanged(w.id, &attunev1.PointStatus{State: attunev1.PointState_POINT_STATE_REFUSED, Reason: reason})
	}
}

// newPoint gives a point its index and has all controllers told of it. It returns
// nil if no index is left.
func (s *Session) newPoint(key string, spec *attunev1.MeasurePoint) *point {
	index := s.points.index(s.now())
	if index == 0 {
		return nil
	}
	p := &point{index: index, key: key, spec: spec, status: map[uint64]*attunev1.PointStatus{}}
	s.points.add(p)
	s.emit(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Point{
		Point: &attunev1.AddPoint{Point: p.index, Spec: p.spec},
	}})
	s.wants.addPoint(p.index, p.spec)
	return p
}

// offerPoints tells a new controller of the points that there are.
func (s *Session) offerPoints(c *controller) {
	for _, p := range s.points.byIndex {
		s.wants.addPointTo(c, p.index, p.spec)
	}
}

// releasePoint takes a point away from an asker, and from the application when
// nobody else wants it.
func (s *Session) releasePoint(a *asker, w wish) {
	p := a.points[w]
	if p == nil {
		return
	}
	delete(a.points, w)
	if a.tunlet != nil {
		a.tunlet.feed.Remove(p.index, w.id)
	}
	p.subscribers = slices.DeleteFunc(p.subscribers, func(sub subscriber) bool { return sub == subscriber{a, w} })
	s.emitAsk(a, w, &attunev1.RecordedAsk{Point: p.index, Over: true})
	if len(p.subscribers) > 0 {
		return
	}
	s.points.retire(p, s.now())
	s.emit(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_PointEnd{
		PointEnd: &attunev1.RemovePoint{Point: p.index},
	}})
	s.wants.removePoint(p.index)
}

// maxEarly bounds the statuses that wait for the start of their process.
const maxEarly = 4096

// pointStatus tells what became of a point in one process. It comes
// by the management channel, and may be faster than the start of its process,
// which comes by the event channel: then it waits for that.
func (s *Session) pointStatus(c *controller, st *attunev1.PointStatus) {
	p := s.points.byIndex[st.GetPoint()]
	if p == nil {
		return
	}
	if st.GetProcess() != 0 {
		id, ok := c.local[st.GetProcess()]
		if !ok {
			if st.GetProcess() > c.newest && len(c.early) < maxEarly {
				c.early = append(c.early, st)
			}
			return
		}
		st.Process = id
	}
	s.emit(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_PointStatus{PointStatus: st}})
	p.status[st.GetProcess()] = st
	for _, sub := range p.subscribers {
		if t := sub.asker.tunlet; t != nil {
			t.pointChanged(sub.wish.id, st)
		}
	}
}

// earlyStatus tells what was heard of a process before its start.
func (s *Session) earlyStatus(c *controller, handle uint64) {
	early := c.early
	c.early = nil
	for _, st := range early {
		if st.GetProcess() == handle {
			s.pointStatus(c, st)
		} else {
			c.early = append(c.early, st)
		}
	}
}
