// SPDX-License-Identifier: Apache-2.0

package malloc

import (
	"math"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

// The knobs: named settings of the controller.
const (
	knobMmap = "glibc.malloc.mmap_threshold"
	knobTrim = "glibc.malloc.trim_threshold"
	knobPad  = "glibc.malloc.top_pad"
)

// settings are the values proposed together, in bytes.
type settings struct {
	mmapThreshold, trimThreshold, topPad uint64
}

// leastTrim is the trim threshold below which the settings are not worth it:
// two of the largest blocks that they can keep.
const leastTrim = 64 * mib

// heapBytes is what glibc may keep of each arena but the main one whatever the trim
// threshold is: a heap that is not empty and no larger (HEAP_MAX_SIZE), which it trims
// only where more than the threshold is unused.
const heapBytes = 64 * mib

// arenasPerCPU bounds a process' arenas on 64-bit machines (NARENAS_FROM_NCORES).
const arenasPerCPU = 8

// unbounded is the room where nothing bounds it.
const unbounded uint64 = math.MaxUint64

// settingsFor bounds the best settings by the room for memory that stays unused
// in the process. What trimming would have given back is
// memory that the program itself had in use before, so the bound matters only
// where other processes of the job want it in between. Own rule: what all arenas may
// keep unused may take half of the room, and the heap grows by a sixteenth of what
// the main one may keep at a time, as with the unbounded values (1 GiB and 64 MiB).
func settingsFor(room, arenas uint64) (settings, bool) {
	best := settings{mmapThreshold: hugeBytes, trimThreshold: gib, topPad: 64 * mib}
	others := max(arenas, 1) - 1
	if room/2/heapBytes < others {
		return settings{}, false
	}
	trim := pages(room/2 - others*heapBytes)
	if trim < leastTrim {
		return settings{}, false
	}
	if trim >= best.trimThreshold {
		return best, true
	}
	return settings{
		mmapThreshold: min(best.mmapThreshold, pages(trim/2)),
		trimThreshold: trim,
		topPad:        min(best.topPad, pages(trim/16)),
	}, true
}

func pages(bytes uint64) uint64 { return bytes &^ (pageBytes - 1) }

// changes lists the settings for one process, in the order in which they are
// applied: room first, so that no block is trimmed in between.
func (s settings) changes(p sdk.Handle) []sdk.Change {
	return []sdk.Change{
		{Process: p, Action: sdk.Setting(knobTrim, sdk.Uint(s.trimThreshold))},
		{Process: p, Action: sdk.Setting(knobPad, sdk.Uint(s.topPad))},
		{Process: p, Action: sdk.Setting(knobMmap, sdk.Uint(s.mmapThreshold))},
	}
}
