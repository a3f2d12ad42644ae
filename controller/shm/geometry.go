// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"cmp"
	"math/bits"
	"os"
	"sync"

	"github.com/attune-hpc/attune/dmlib/abi"
	"github.com/attune-hpc/attune/internal/cpulist"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Defaults and limits of a Geometry.
const (
	defaultPrograms = 64
	defaultTables   = 12

	maxSlots = 4096
	maxRings = 4096

	smallestSlots       = 8
	smallestRings       = 2
	smallestRingRecords = 256
	shrinkFactor        = 4

	// spareSlots and spareRings are for threads beside the two teams that a program
	// may have, each with a thread per CPU, and for those that come after an attach.
	spareSlots, spareRings = 64, 16
	// ringsBytes is what all rings may take together if all are used, as far as each
	// then has fewestRecords. mostRecords of a thread last 8 ms at 4 million events per
	// second.
	ringsBytes                 = 32 << 20
	fewestRecords, mostRecords = 1024, 32768
	// addressShare is the part of a process' address space that is left to it for
	// each byte of the memory file, where there is a limit. DMLib holds to the same
	// (dmlib/src/gate.c).
	addressShare = 16
)

// Geometry sizes a memory file. It is sparse: memory is used only for slots
// and rings that threads really use, but the whole of it counts against the
// application's address-space limit.
type Geometry struct {
	// Slots is the number of threads that can be watched at one time.
	// About 84 KiB of address space each. 0: as of GeometryFor one thread here.
	Slots int
	// Rings is the number of threads that can have a ring of events. 0: likewise.
	Rings int
	// RingRecords is the length of one ring in records of 32 bytes, a power
	// of two. 0: likewise.
	RingRecords int
	// Programs is the number of points that can capture something at one time.
	// 0: 64; -1: none.
	Programs int
	// Tables is the number of those that can have a key. 0: 12, each 640 KiB;
	// -1: none.
	Tables int
}

// GeometryFor returns the geometry for a process that has so many threads, on a node
// with so many CPUs.
func GeometryFor(cpus, threads int) Geometry {
	g := Geometry{
		Slots: min(max(2*cpus, threads+threads/4)+spareSlots, maxSlots),
		Rings: min(max(2*cpus, threads+threads/4)+spareRings, maxRings),
	}
	records := ringsBytes / (g.Rings * attunev1.RecordSize)
	g.RingRecords = min(max(1<<(bits.Len(uint(records))-1), fewestRecords), mostRecords)
	return g.withFixed()
}

// withDefaults replaces zeros by the documented values.
func (g Geometry) withDefaults() Geometry { return g.withDefaultsOf(commits()) }

func (g Geometry) withDefaultsOf(committed bool) Geometry {
	if committed && g == (Geometry{}) {
		return Fit(Limits{Locked: true})
	}
	here := GeometryFor(possibleCPUs(), 1)
	g.Slots = cmp.Or(g.Slots, here.Slots)
	g.Rings = cmp.Or(g.Rings, here.Rings)
	g.RingRecords = cmp.Or(g.RingRecords, here.RingRecords)
	return g.withFixed()
}

// withFixed replaces the zeros of what is the same for all.
func (g Geometry) withFixed() Geometry {
	g.Programs = cmp.Or(g.Programs, defaultPrograms)
	g.Tables = cmp.Or(g.Tables, defaultTables)
	return g
}

// Smaller is the geometry to offer to an application that could not map g: a
// quarter of everything, so that a few attempts reach from 35 MB to 1 MB. It
// is false when g is the smallest already.
func (g Geometry) Smaller() (Geometry, bool) {
	g = g.withDefaults()
	s := Geometry{
		Slots:       shrink(g.Slots, smallestSlots),
		Rings:       shrink(g.Rings, smallestRings),
		RingRecords: shrink(g.RingRecords, smallestRingRecords),
		Programs:    shrinkAway(g.Programs),
		Tables:      shrinkAway(g.Tables),
	}
	return s, s != g
}

// shrink divides, but not below the floor, and never grows what is below it.
func shrink(n, floor int) int {
	return min(n, max(n/shrinkFactor, floor))
}

// shrinkAway divides and ends with none, which is -1.
func shrinkAway(n int) int {
	if n /= shrinkFactor; n > 0 {
		return n
	}
	return -1
}

// Bytes is the address space that the memory file takes in the application.
func (g Geometry) Bytes() int64 { return int64(g.withDefaults().place().total) }

// placement holds the byte offsets of the parts of a memory file.
type placement struct {
	control, mailbox, slots, rings, programs, tables, total int
}

// place lays the parts out. Slots and rings begin on a page, so that a page
// which only the controller or only one thread writes stays so.
func (g Geometry) place() placement {
	page := os.Getpagesize()
	var p placement
	p.control = abi.HeaderBytes
	p.mailbox = p.control + PointCount*abi.PointControlBytes
	p.slots = alignUp(p.mailbox+MailboxSize*abi.CommandBytes, page)
	p.rings = alignUp(p.slots+(g.Slots+1)*abi.SlotBytes, page) // the last slot is common
	p.programs = alignUp(p.rings+g.Rings*g.RingRecords*attunev1.RecordSize, page)
	p.tables = alignUp(p.programs+max(g.Programs, 0)*abi.ProgramSlotBytes, page)
	p.total = alignUp(p.tables+max(g.Tables, 0)*abi.TableBytes, page)
	return p
}

func alignUp(n, to int) int { return (n + to - 1) / to * to }

// possibleCPUs is how many CPUs the node can have, whatever this process may use.
var possibleCPUs = sync.OnceValue(func() int {
	text, err := os.ReadFile("/sys/devices/system/cpu/possible")
	if err != nil {
		return 1
	}
	return countCPUs(string(text))
})

// countCPUs is how many CPUs a list names; at least 1, and no more than can have slots.
func countCPUs(list string) int {
	cpus, _ := cpulist.Parse(list) // what is no list names none
	return min(max(len(cpus), 1), maxSlots)
}

// Limits are what a process has to put a memory file into.
type Limits struct {
	// CPUs of the node, and threads of the process so far. 0: this node's, and one.
	CPUs, Threads int
	// Addresses are what the process may map, bytes. 0: there is no limit.
	Addresses uint64
	// Locked says that the process has locked memory: what it maps may be locked as well
	// and count at once, whether it is ever used or not.
	Locked bool
}

// Fit returns the largest geometry within the limits, or the smallest of all.
func Fit(l Limits) Geometry {
	if l.CPUs == 0 {
		l.CPUs = possibleCPUs()
	}
	g := GeometryFor(l.CPUs, max(l.Threads, 1))
	for {
		smaller, ok := g.Smaller()
		if !ok || !l.Locked && !commits() && (l.Addresses == 0 || uint64(g.Bytes()) <= l.Addresses/addressShare) {
			return g
		}
		g = smaller
	}
}
