// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"os"
	"slices"
	"time"

	"github.com/attune-hpc/attune/internal/clock"
	"github.com/attune-hpc/attune/internal/footprint"
	"github.com/attune-hpc/attune/internal/procid"
)

// Fields of directories.
const diskBytes, diskFiles = "disk.bytes_peak", "disk.files_peak"

// reading is what one look at all processes gives.
type reading struct {
	seconds                      float64
	late                         float64 // for how many seconds the look waited until CPU times were read
	cores                        float64
	taken                        taken
	partial                      bool // what something took that ended meanwhile may be in no sum
	processes, peak, total       uint64
	resident, anonymous, virtual uint64
	cgroup, cgroupPeak           uint64
	hasCgroup                    bool
	disk                         footprint.Footprint
	hasDisk                      bool
}

// values are the fields of an account that can be limited, as of a reading. Those
// of memory are what there is now: the most there was is the caller's to keep.
func (r *reading) values() map[string]float64 {
	return map[string]float64{
		"wall_seconds": r.seconds, "cpu_seconds": r.taken.cpu.Seconds(), "cores_peak": r.cores,
		"processes.peak": float64(r.peak), "processes.total": float64(r.total),
		"memory.resident_peak_bytes": float64(r.resident), "memory.anonymous_peak_bytes": float64(r.anonymous),
		"memory.virtual_peak_bytes": float64(r.virtual), "memory.cgroup_peak_bytes": float64(r.cgroupPeak),
		"io.read_bytes": float64(r.taken.read), "io.written_bytes": float64(r.taken.written),
		"io.read_calls": float64(r.taken.readCalls), "io.written_calls": float64(r.taken.writtenCalls),
		diskBytes: float64(r.disk.Bytes), diskFiles: float64(r.disk.Files),
		"io.storage_read_bytes": float64(r.taken.storageRead), "io.storage_written_bytes": float64(r.taken.storageWritten),
	}
}

// read looks at all processes of n. detailed says whether bytes are wanted too,
// which cost several times as much as memory and CPU time.
func read(n now, detailed bool) reading {
	r := reading{taken: n.done, partial: n.moved, processes: uint64(len(n.alive)), peak: n.peak, total: n.total}
	undone := slices.Concat(n.alive, n.ending)
	for _, p := range undone { // before all that takes time: nothing tells of a process that is reaped meanwhile
		r.addTime(p, detailed)
	}
	r.late = max(0, time.Since(n.begun)-(clock.Thread()-n.worked)).Seconds()
	// After those that may wait for them: what is waited for meanwhile is left out, and not
	// counted twice.
	for _, pid := range n.unwaited {
		stat, err := procid.ReadStat(pid)
		if err != nil || !stat.Zombie() {
			r.partial = true
			continue
		}
		r.taken.add(withChildren(stat, 0))
	}
	for _, p := range undone {
		if p.whole || !detailed {
			r.taken.wait += waitedForCPU(p)
			continue
		}
		t := readThreads(p)
		t.cpu = 0 // addTime has it, to the nanosecond
		r.taken.add(t)
	}
	r.addMemory(n.alive)
	return r
}

// addTime adds the CPU time of a process, and all that is asked of a whole one.
func (r *reading) addTime(p living, detailed bool) {
	var (
		t   taken
		err error
	)
	if p.whole {
		t, err = readWhole(p.pid, detailed)
	} else if t.cpu, err = procid.CPUTime(p.pid); err == nil {
		t.cpu = max(0, t.cpu-p.done.cpu)
	}
	r.taken.add(t)
	r.partial = r.partial || err != nil
}

// addMemory adds up the memory of processes.
func (r *reading) addMemory(alive []living) {
	page := uint64(os.Getpagesize())
	for p := range withOwnMemory(alive) {
		if size, resident, shared, err := memoryOf(p.pid); err == nil {
			r.virtual += size * page
			r.resident += resident * page
			r.anonymous += (resident - min(resident, shared)) * page
		}
	}
}

// waitedForCPU is how long a process's threads waited for a CPU.
func waitedForCPU(p living) (sum time.Duration) {
	for _, tid := range p.undone() {
		if sched, err := procid.ReadSchedstat(p.pid, tid); err == nil {
			sum += time.Duration(sched.Wait)
		}
	}
	return sum
}
