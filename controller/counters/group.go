// SPDX-License-Identifier: Apache-2.0

package counters

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// event is one thing that is counted.
type event struct {
	kind   uint32
	config uint64
}

// software are events that the kernel counts, and that any user may have counted in
// their own threads: task_clock, minor_faults, major_faults.
func software() []event {
	return []event{
		{unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_TASK_CLOCK},
		{unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_PAGE_FAULTS_MIN},
		{unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_PAGE_FAULTS_MAJ},
	}
}

// scheduling are events that happen in the kernel only.
func scheduling() []event {
	return []event{
		{unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_CONTEXT_SWITCHES},
		{unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_CPU_MIGRATIONS},
	}
}

// hardware are events that the processor counts. Four fit into the counters of most
// processors at a time; a group that does not fit never counts.
func hardware() []event {
	return []event{
		{unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_CPU_CYCLES},
		{unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_INSTRUCTIONS},
		{unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_CACHE_MISSES},
		{unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_BRANCH_MISSES},
	}
}

// group is the descriptors of events that count over the same time, the leader first.
// The zero value counts nothing.
type group []int

// openGroup has the events of a thread counted, with what the kernel does for it or
// without. The group takes no part of itself for an error.
func openGroup(tid int, events []event, userOnly bool) (group, error) {
	g := make(group, 0, len(events))
	leader := -1
	for _, e := range events {
		attributes := unix.PerfEventAttr{
			Type: e.kind, Config: e.config, Size: unix.PERF_ATTR_SIZE_VER5,
			Read_format: unix.PERF_FORMAT_GROUP | unix.PERF_FORMAT_TOTAL_TIME_ENABLED | unix.PERF_FORMAT_TOTAL_TIME_RUNNING,
		}
		if userOnly {
			attributes.Bits = unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv
		}
		fd, err := unix.PerfEventOpen(&attributes, tid, -1, leader, unix.PERF_FLAG_FD_CLOEXEC)
		if err != nil {
			g.close()
			return nil, fmt.Errorf("perf_event_open of thread %d: %w", tid, err)
		}
		g = append(g, fd)
		leader = g[0]
	}
	return g, nil
}

func (g group) close() {
	for _, fd := range g {
		_ = unix.Close(fd) // was opened for reading: there is nothing to lose
	}
}

// counted is a reading of a group.
type counted struct {
	enabled, running time.Duration // for how long it was wanted, and counted
	values           []uint64      // in the order of the events
}

// read reads the group.
func (g group) read() (counted, error) {
	buffer := make([]byte, 8*(3+len(g)))
	n, err := unix.Read(g[0], buffer)
	if err != nil {
		return counted{}, fmt.Errorf("read counters: %w", err)
	}
	return parseGroup(buffer[:n], len(g))
}

// errReading says that a reading does not look as the kernel makes it.
var errReading = errors.New("malformed reading of counters")

// parseGroup reads what read(2) returns of a group, see perf_event_open(2): the number
// of events, for how long they were wanted, for how long counted, and their values.
func parseGroup(data []byte, events int) (counted, error) {
	word := func(i int) uint64 { return binary.NativeEndian.Uint64(data[8*i:]) }
	if len(data) != 8*(3+events) || word(0) != uint64(events) {
		return counted{}, errReading
	}
	c := counted{enabled: time.Duration(word(1)), running: time.Duration(word(2)), values: make([]uint64, events)}
	for i := range c.values {
		c.values[i] = word(3 + i)
	}
	return c, nil
}
