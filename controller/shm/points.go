// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"errors"
	"fmt"
	"sync"

	"github.com/attune-hpc/attune/controller/aggregate"
	"github.com/attune-hpc/attune/dmlib/abi"
)

// ErrSharers is returned by [Points.Share] when no local point is left.
var ErrSharers = errors.New("all points that share hooks are in use")

// point is the controller's own memory of one local point.
type point struct {
	control PointControl     // Point 0: not enabled
	use     *programUse      // of control.Program
	sharers uint16           // of a hook: bit b: point abi.SharerFirst + b takes its hits as well
	last    aggregate.Counts // at the last Aggregates, or when it was enabled
}

// inSlots says that threads count the point's hits in their slots.
func (p *point) inSlots() bool { return p.control.Aggregate && (p.use == nil || p.use.keys == nil) }

// Points are the measure points of a process. Their methods may be called at any time by
// several goroutines.
type Points struct {
	*mapping
	owners *ownership

	mu       sync.Mutex // guards what follows; after life
	points   []point    // nil until there is one: most programs end before
	programs programs
}

// SetPoint enables or changes the local point index (a hook's index, or
// HookCount plus a stub's number). Records that another session point has left in
// the rings are dropped and counted, as after ClearPoint. A point that is set already as it should be
// goes on without missing a hit. Safe to call at any time. Points that [Points.Share]
// returned are changed so as well.
func (p *Points) SetPoint(index int, c PointControl) error {
	if err := c.validate(index); err != nil {
		return err
	}
	p.life.RLock()
	defer p.life.RUnlock()
	if p.data == nil {
		return ErrClosed
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.setPoint(index, c)
}

// setPoint sets a point that is valid. The caller holds life and mu.
func (p *Points) setPoint(index int, c PointControl) error {
	if p.points == nil {
		p.points = make([]point, PointCount)
	}
	pt := &p.points[index]
	if pt.control.equal(c) {
		return nil // switched off for a moment, it would miss hits
	}
	use, err := p.programs.use(c.Point, c.Duration, c.Program)
	if err != nil {
		return err
	}
	if !pt.control.Aggregate || pt.control.Duration != c.Duration || !pt.control.Program.equal(c.Program) {
		// What earlier askers counted is not ours.
		pt.last = p.restart(index)
	}
	before := *pt
	pt.control, pt.use = c, use
	p.owners.give(index, c.Point)
	p.writeControl(index, before.control, c, use)
	p.programs.leave(before.use)
	p.retime(index)
	return nil
}

// restart clears the extremes of a local point, and returns what was counted so far.
func (p *Points) restart(index int) (sum aggregate.Counts) {
	var one aggregate.Counts
	p.eachAggregate([]int{index}, func(_ int, a *aggregate.Memory) {
		a.Read(&one)
		sum.Add(&one)
		a.Reset(0)
		a.Reset(1)
	})
	return sum
}

// writeControl switches measuring off, writes the parameters and switches on,
// so that no hit is judged by a mixture. The mailbox bit is left alone. Durations that
// begin to be measured begin a new era: calls whose end was not seen are open still.
func (p *Points) writeControl(index int, before, c PointControl, use *programUse) {
	at := p.controlAt(index)
	only := c.only()
	and32(p.data, at+abi.PointControlWordAt, ^uint32(ctlMeasuring))
	store32(p.data, at+abi.PointControlSampleMaskAt, max(c.SampleEvery, 1)-1)
	p.writeParameter(index, c, use)
	store64(p.data, at+abi.PointControlMinValueAt, only.Min)
	store64(p.data, at+abi.PointControlMaxValueAt, only.Max)
	if c.Duration && (!before.Duration || before.Point != c.Point) {
		era := at + abi.PointControlEraAt
		store32(p.data, era, load32(p.data, era)+1)
	}
	or32(p.data, at+abi.PointControlWordAt, c.word())
}

// writeParameter writes which parameter is the value; a hook has a value of its own,
// and there its sharers in this place.
func (p *Points) writeParameter(index int, c PointControl, use *programUse) {
	parameter := uint32(c.Parameter)
	if index < HookCount {
		parameter = uint32(p.points[index].sharers)
	}
	store32(p.data, p.controlAt(index)+abi.PointControlParameterAt, parameter|use.word()<<16)
}

// ClearPoint disables the local point. Records of it that are still in the
// rings are dropped: Drain first if they matter. Those that share a hook go on
// without it. Safe to call at any time; an
// index out of range or a point that is not enabled changes nothing.
func (p *Points) ClearPoint(index int) {
	p.life.RLock()
	defer p.life.RUnlock()
	if p.data == nil || index < 0 || index >= PointCount {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	and32(p.data, p.controlAt(index)+abi.PointControlWordAt, ^uint32(ctlMeasuring))
	p.owners.take(index)
	if p.points != nil {
		p.programs.leave(p.points[index].use)
		p.points[index] = point{sharers: p.points[index].sharers}
		p.unshare(index)
	}
}

// Share has a local point of its own take the hits of a hook, next to whatever has
// the hook's own point, and returns its index. It is for whoever wants other
// settings than those: each takes, filters, counts and samples by its own. A hit
// costs the way through both. [Points.ClearPoint] ends it. Safe to call at any time.
func (p *Points) Share(hook int, c PointControl) (index int, err error) {
	if err := c.validate(hook); err != nil {
		return 0, err
	}
	if hook >= abi.SharerFirst {
		return 0, fmt.Errorf("local point %d is no hook that can be shared: want 0 to %d", hook, abi.SharerFirst-1)
	}
	p.life.RLock()
	defer p.life.RUnlock()
	if p.data == nil {
		return 0, ErrClosed
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	index = p.freeSharer()
	if index < 0 {
		return 0, ErrSharers
	}
	if err := p.setPoint(index, c); err != nil {
		return 0, err
	}
	p.points[hook].sharers |= 1 << (index - abi.SharerFirst)
	p.writeSharers(hook)
	return index, nil
}

// freeSharer returns -1 if there is none. The caller holds mu.
func (p *Points) freeSharer() int {
	if p.points == nil {
		return abi.SharerFirst
	}
	for i := abi.SharerFirst; i < HookCount; i++ {
		if p.points[i].control.Point == 0 {
			return i
		}
	}
	return -1
}

// sharedBy finds the hook whose hits a point takes as well; -1: it is no sharer. The
// caller holds mu.
func (p *Points) sharedBy(index int) int {
	if index < abi.SharerFirst || index >= HookCount {
		return -1
	}
	for hook := range abi.SharerFirst {
		if p.points[hook].sharers&(1<<(index-abi.SharerFirst)) != 0 {
			return hook
		}
	}
	return -1
}

// unshare ends what Share began. The caller holds life and mu.
func (p *Points) unshare(index int) {
	if hook := p.sharedBy(index); hook >= 0 {
		p.points[hook].sharers &^= 1 << (index - abi.SharerFirst)
		p.writeSharers(hook)
	}
}

// retime follows a change of a sharer's control. The caller holds life and mu.
func (p *Points) retime(index int) {
	if hook := p.sharedBy(index); hook >= 0 {
		p.writeSharers(hook)
	}
}

// writeSharers tells DMLib who shares a hook: who first, then that there are some.
// The caller holds life and mu.
func (p *Points) writeSharers(hook int) {
	var word uint32
	for i, sharer := range p.points[abi.SharerFirst:HookCount] {
		switch shares := p.points[hook].sharers&(1<<i) != 0; {
		case shares && sharer.control.Duration:
			word |= abi.CtlShared | abi.CtlTimed
		case shares:
			word |= abi.CtlShared
		}
	}
	p.writeParameter(hook, p.points[hook].control, p.points[hook].use)
	at := p.controlAt(hook) + abi.PointControlWordAt
	or32(p.data, at, word)
	and32(p.data, at, ^(^word & (abi.CtlShared | abi.CtlTimed)))
}
