// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"errors"
	"fmt"

	"github.com/attune-hpc/attune/dmlib/abi"
)

// ErrSharers is returned by [Memory.Share] when no local point is left.
var ErrSharers = errors.New("all points that share hooks are in use")

// Share has a local point of its own take the hits of a hook, next to whatever has
// the hook's own point, and returns its index. It is for whoever wants other
// settings than those: each takes, filters, counts and samples by its own. A hit
// costs the way through both. [Memory.ClearPoint] ends it. Safe to call at any time.
func (m *Memory) Share(hook int, c PointControl) (index int, err error) {
	if err := c.validate(hook); err != nil {
		return 0, err
	}
	if hook >= abi.SharerFirst {
		return 0, fmt.Errorf("local point %d is no hook that can be shared: want 0 to %d", hook, abi.SharerFirst-1)
	}
	m.life.RLock()
	defer m.life.RUnlock()
	if m.data == nil {
		return 0, ErrClosed
	}
	m.control.Lock()
	defer m.control.Unlock()
	index = m.freeSharer()
	if index < 0 {
		return 0, ErrSharers
	}
	if err := m.setPoint(index, c); err != nil {
		return 0, err
	}
	m.points[hook].sharers |= 1 << (index - abi.SharerFirst)
	m.writeSharers(hook)
	return index, nil
}

// freeSharer returns -1 if there is none. The caller holds control.
func (m *Memory) freeSharer() int {
	if m.points == nil {
		return abi.SharerFirst
	}
	for i := abi.SharerFirst; i < HookCount; i++ {
		if m.points[i].control.Point == 0 {
			return i
		}
	}
	return -1
}

// sharedBy finds the hook whose hits a point takes as well; -1: it is no sharer. The
// caller holds control.
func (m *Memory) sharedBy(index int) int {
	if index < abi.SharerFirst || index >= HookCount {
		return -1
	}
	for hook := range abi.SharerFirst {
		if m.points[hook].sharers&(1<<(index-abi.SharerFirst)) != 0 {
			return hook
		}
	}
	return -1
}

// unshare ends what Share began. The caller holds life and control.
func (m *Memory) unshare(index int) {
	if hook := m.sharedBy(index); hook >= 0 {
		m.points[hook].sharers &^= 1 << (index - abi.SharerFirst)
		m.writeSharers(hook)
	}
}

// retime follows a change of a sharer's control. The caller holds life and control.
func (m *Memory) retime(index int) {
	if hook := m.sharedBy(index); hook >= 0 {
		m.writeSharers(hook)
	}
}

// writeSharers tells DMLib who shares a hook: who first, then that there are some.
// The caller holds life and control.
func (m *Memory) writeSharers(hook int) {
	var word uint32
	for i, p := range m.points[abi.SharerFirst:HookCount] {
		switch shares := m.points[hook].sharers&(1<<i) != 0; {
		case shares && p.control.Duration:
			word |= abi.CtlShared | abi.CtlTimed
		case shares:
			word |= abi.CtlShared
		}
	}
	m.writeParameter(hook, m.points[hook].control, m.points[hook].use)
	at := m.controlAt(hook) + abi.PointControlWordAt
	or32(m.data, at, word)
	and32(m.data, at, ^(^word & (abi.CtlShared | abi.CtlTimed)))
}
