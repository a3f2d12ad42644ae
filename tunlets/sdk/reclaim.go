// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"time"
)

const (
	// calmAfter is how long no collection must have been needed for a process to count
	// as calm.
	calmAfter = 5 * time.Second
	// leastSpare is how much memory is worth a collection, bytes, and leastSpareShare
	// which part of what was kept after the last one.
	leastSpare      = 4 << 20
	leastSpareShare = 0.25
)

// reclaimer gives memory back that a process needed while it was busy. The runtime
// collects garbage when the heap has grown to a multiple of what is alive, or after two
// minutes, and returns free pages bit by bit: after thousands of instances have looked
// at something and found nothing, that is more than what they keep. A smaller multiple
// would cost a busy process CPU time; this costs it nothing, and a calm one a collection
// for each leastSpare that it allocates, one in calmAfter at most. A process that is not
// called is not woken for it. Safe for use by several goroutines.
type reclaimer struct {
	wait    func(time.Duration, func()) // calls a function after that time
	looking atomic.Bool                 // a look is due

	// What follows belongs to the looks, of which there is one at a time.
	cycles uint64 // of collection, at the last look
	kept   uint64 // bytes that were left when memory was given back
}

func newReclaimer() *reclaimer {
	return &reclaimer{wait: func(d time.Duration, look func()) { time.AfterFunc(d, look) }}
}

// called notes that the process does something.
func (r *reclaimer) called() {
	if !r.looking.Load() && r.looking.CompareAndSwap(false, true) {
		r.wait(calmAfter, r.look)
	}
}

// look gives memory back where the process is calm, and looks again later unless there
// is nothing to give back.
func (r *reclaimer) look() {
	h := readHeap()
	r.kept = min(r.kept, h.held)
	switch spare := h.held - r.kept; {
	case spare < max(leastSpare, uint64(leastSpareShare*float64(r.kept))):
		r.looking.Store(false)
		return
	case h.cycles == r.cycles:
		debug.FreeOSMemory()
		h = readHeap()
		r.kept = h.held
	}
	r.cycles = h.cycles
	r.wait(calmAfter, r.look)
}

// heap is the state of the Go heap.
type heap struct {
	cycles uint64 // of collection, until now
	held   uint64 // bytes of objects, dead ones as well, and of free pages
}

// readHeap reads it, which stops nobody.
func readHeap() heap {
	s := []metrics.Sample{
		{Name: "/gc/cycles/total:gc-cycles"}, {Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(s)
	return heap{cycles: s[0].Value.Uint64(), held: s[1].Value.Uint64() + s[2].Value.Uint64()}
}
