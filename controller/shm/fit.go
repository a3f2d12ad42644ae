// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"math/bits"
	"os"
	"strconv"
	"strings"
	"sync"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
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
		if !ok || !l.Locked && (l.Addresses == 0 || uint64(g.Bytes()) <= l.Addresses/addressShare) {
			return g
		}
		g = smaller
	}
}

// possibleCPUs is how many CPUs the node can have, whatever this process may use.
var possibleCPUs = sync.OnceValue(func() int {
	text, err := os.ReadFile("/sys/devices/system/cpu/possible")
	if err != nil {
		return 1
	}
	return parsePossible(string(text))
})

// parsePossible counts the CPUs of a list such as "0-7"; at least 1.
func parsePossible(list string) (cpus int) {
	for _, part := range strings.Split(strings.TrimSpace(list), ",") {
		first, last, isRange := strings.Cut(part, "-")
		from, err := strconv.Atoi(first)
		to := from
		if err == nil && isRange {
			to, err = strconv.Atoi(last)
		}
		if err == nil && from <= to {
			cpus += to - from + 1
		}
	}
	return min(max(cpus, 1), maxSlots)
}
