// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/aggregate"
	"github.com/attune-hpc/attune/dmlib/abi"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// ErrClosed is returned by methods of a Memory and its parts after Close.
var ErrClosed = errors.New("memory file is closed")

// mapping is a memory file in this process. Whoever touches data holds life for
// reading.
type mapping struct {
	presence

	geometry Geometry
	at       placement

	life sync.RWMutex
	data []byte // nil once closed
}

// mapFile maps a file of this geometry, which is complete.
func mapFile(file *os.File, g Geometry) (*mapping, error) {
	m := &mapping{geometry: g, at: g.place()}
	m.presence = newPresence(file, m.at.total)
	var err error
	m.data, err = unix.Mmap(int(file.Fd()), 0, m.at.total, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map memory file of %d bytes: %w", m.at.total, err)
	}
	return m, nil
}

func (m *mapping) isClosed() bool {
	m.life.RLock()
	defer m.life.RUnlock()
	return m.data == nil
}

// detach turns every point off and DMLib inert. The caller holds life.
func (m *mapping) detach() {
	store32(m.data, abi.HeaderDetachedAt, 1)
	for i := range PointCount {
		and32(m.data, m.controlAt(i), ^uint32(ctlMeasuring|abi.CtlMailbox|abi.CtlShared|abi.CtlTimed))
	}
}

// controlAt, slotAt, commandAt and ringAt give byte offsets of checked
// indices.
func (m *mapping) controlAt(index int) int { return m.at.control + index*abi.PointControlBytes }
func (m *mapping) slotAt(index int) int    { return m.at.slots + index*abi.SlotBytes }
func (m *mapping) commandAt(index int) int { return m.at.mailbox + index*abi.CommandBytes }
func (m *mapping) programAt(index int) int { return m.at.programs + index*abi.ProgramSlotBytes }
func (m *mapping) tableAt(index int) int   { return m.at.tables + index*abi.TableBytes }
func (m *mapping) ringAt(index int) int {
	return m.at.rings + index*m.geometry.RingRecords*attunev1.RecordSize
}

// usedSlots is how many slots, from the first on, have ever been claimed. There
// may be hundreds, each on pages of its own; most processes use a few. The caller holds
// life, and looks at those only that are slotPresent.
func (m *mapping) usedSlots() int {
	return min(int(load32(m.data, abi.HeaderSlotsUsedAt)), m.geometry.Slots)
}

// newLook begins one.
func (m *mapping) newLook() look { return look{presence: &m.presence} }

// slotPresent says whether a slot may have been claimed, whatever the application says.
func (m *mapping) slotPresent(l *look, index int) bool {
	return l.anyPresent(m.slotAt(index), abi.SlotAggregatesAt)
}

// eachAggregate calls f with the aggregate of each of some local points, and its place among
// them, in every slot that was ever in use, and in the common one, to which threads without a
// slot add: a slot's counts stay when it changes hands, so that nothing is counted twice or
// lost. What is not there has counted nothing. The points ascend: a hole is then asked for
// once. The caller holds life.
func (m *mapping) eachAggregate(points []int, f func(i int, a *aggregate.Memory)) {
	l := m.newLook()
	visit := func(slot int) {
		for i, point := range points {
			at := m.slotAt(slot) + abi.SlotAggregatesAt + point*abi.AggregateBytes
			if l.anyPresent(at, abi.AggregateBytes) {
				f(i, &m.aggregates(at, 1)[0])
			}
		}
	}
	for i := range m.usedSlots() {
		visit(i)
	}
	if load32(m.data, abi.HeaderCommonUsedAt) != 0 {
		visit(m.geometry.Slots)
	}
}

// aggregates views so many aggregates at an offset of the mapping.
func (m *mapping) aggregates(at, count int) aggregate.Table {
	return unsafe.Slice((*aggregate.Memory)(unsafe.Pointer(&m.data[at : at+count*abi.AggregateBytes][0])), count)
}
