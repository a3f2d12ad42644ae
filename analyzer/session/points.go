// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"fmt"
	"slices"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	// maxPoints bounds the points of one holder.
	maxPoints = 1024
	// maxEarly bounds the statuses that wait for the start of their process.
	maxEarly = 4096
)

// points shares the measure points among those who ask for them, and has the
// controllers measure each as long as somebody has it. It belongs to the loop.
type points struct {
	pointSet
	clock     *clock
	teller    *teller
	processes *processes
	wants     *wants
}

// request serves a holder's wish for a point.
func (ps *points) request(h *holder, w wish, spec *attunev1.MeasurePoint) {
	key := keyOf(spec)
	if old := h.points[w]; old != nil {
		if old.key == key {
			return
		}
		ps.release(h, w)
	}
	p, refused := ps.pointFor(h, key, spec)
	if refused != "" {
		h.hears.refused(w, spec, refused)
		return
	}
	p.subscribers = append(p.subscribers, subscriber{h, w})
	h.points[w] = p
	h.hears.granted(w, spec, p)
}

// pointFor returns the point that a holder is to have, or why there is none.
func (ps *points) pointFor(h *holder, key string, spec *attunev1.MeasurePoint) (p *point, refused string) {
	switch {
	case spec.GetTarget() == nil:
		return nil, "the measure point has no target"
	case len(h.points) >= maxPoints:
		return nil, fmt.Sprintf("%s may have %d measure points", h.name, maxPoints)
	}
	switch p = ps.byKey[key]; {
	case p != nil:
		return p, ""
	case ps.bytes+weightOf(spec) > maxPointBytes:
		return nil, fmt.Sprintf("the measure points of a session may take %d MiB: remove some first, or ask for fewer", maxPointBytes>>20)
	}
	if p = ps.create(key, spec); p == nil {
		return nil, "no index is left for another measure point"
	}
	return p, ""
}

// create gives a point its index and has all controllers told of it. It returns nil if
// no index is left.
func (ps *points) create(key string, spec *attunev1.MeasurePoint) *point {
	index := ps.index(ps.clock.now())
	if index == 0 {
		return nil
	}
	p := &point{index: index, key: key, spec: spec, status: map[uint64]*attunev1.PointStatus{}}
	ps.add(p)
	ps.teller.emit(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Point{
		Point: &attunev1.AddPoint{Point: p.index, Spec: p.spec},
	}})
	ps.wants.addPoint(p.index, p.spec)
	return p
}

// release takes a point away from a holder, and from the application when nobody else
// wants it.
func (ps *points) release(h *holder, w wish) {
	p := h.points[w]
	if p == nil {
		return
	}
	delete(h.points, w)
	p.subscribers = slices.DeleteFunc(p.subscribers, func(sub subscriber) bool { return sub == subscriber{h, w} })
	h.hears.released(w, p)
	if len(p.subscribers) > 0 {
		return
	}
	ps.retire(p, ps.clock.now())
	ps.teller.emit(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_PointEnd{
		PointEnd: &attunev1.RemovePoint{Point: p.index},
	}})
	ps.wants.removePoint(p.index)
}

// releaseAll takes all points away from a holder.
func (ps *points) releaseAll(h *holder) {
	for w := range h.points {
		ps.release(h, w)
	}
}

// releaseEnded takes those points away from a holder that are for a process that has ended, and
// for none that lives: there is room for others.
func (ps *points) releaseEnded(h *holder, process uint64) {
	var over []subscriber
	for w, p := range h.points {
		if in := p.spec.GetProcesses(); slices.Contains(in, process) && !slices.ContainsFunc(in, ps.processes.lives) {
			over = append(over, subscriber{h, w})
		}
	}
	slices.SortFunc(over, func(a, b subscriber) int { return cmp.Compare(h.points[a.wish].index, h.points[b.wish].index) })
	for _, s := range over {
		ps.release(s.holder, s.wish)
	}
}

// offer has a new controller told of the points that there are.
func (ps *points) offer(c *controller) {
	for _, p := range ps.byIndex {
		ps.wants.addPointTo(c, p.index, p.spec)
	}
}

// setStatus tells what became of a point in one process. It comes by the management
// channel, and may be faster than the start of its process, which comes by the event
// channel: then it waits for that. After the end of its process it tells nothing.
func (ps *points) setStatus(c *controller, st *attunev1.PointStatus) {
	p := ps.byIndex[st.GetPoint()]
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
		if !ps.processes.lives(id) {
			return
		}
		st.Process = id
	}
	ps.teller.emit(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_PointStatus{PointStatus: st}})
	p.status[st.GetProcess()] = st
	for _, sub := range p.subscribers {
		sub.holder.hears.changed(sub.wish, st)
	}
}

// setEarly tells what was heard of a process before its start.
func (ps *points) setEarly(c *controller, handle uint64) {
	early := c.early
	c.early = nil
	for _, st := range early {
		if st.GetProcess() == handle {
			ps.setStatus(c, st)
		} else {
			c.early = append(c.early, st)
		}
	}
}
