// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"fmt"
	"iter"
	"os"
	"time"

	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/footprint"
	"github.com/attune-hpc/attune/internal/procid"
)

// Fields of directories.
const diskBytes, diskFiles = "disk.bytes_peak", "disk.files_peak"

// reading is what one look at all processes gives.
type reading struct {
	seconds                      float64
	cores                        float64
	taken                        taken
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
	r := reading{taken: n.done, processes: uint64(len(n.alive)), peak: n.peak, total: n.total}
	r.addMemory(n.alive)
	for _, p := range n.alive {
		switch {
		case p.whole:
			r.taken.add(readWhole(p.pid, detailed))
			r.taken.wait += waitedForCPU(p.pid)
		case detailed:
			r.taken.add(readThreads(p.pid))
		default:
			own, _ := procid.CPUTime(p.pid) // 0 if it has ended
			r.taken.cpu += max(0, own-p.done.cpu)
			r.taken.wait += waitedForCPU(p.pid)
		}
	}
	// After those that may wait for them: what is waited for meanwhile is left out, and not
	// counted twice.
	for _, pid := range n.unwaited {
		if stat, err := procid.ReadStat(pid); err == nil && stat.Zombie() {
			r.taken.add(withChildren(stat, 0))
		}
	}
	return r
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

// withOwnMemory are the processes of which no parent among them has the same address space. Until
// it executes a program, a child of vfork(2) has its parent's, and so has that of system(3): it
// must not count twice. The question is asked of a child before its memory is read, for it never
// gets its parent's back. Where the kernel does not tell (see [procid.SharesMemory]), the memory of
// both counts: less would hide memory that there is.
func withOwnMemory(alive []living) iter.Seq[living] {
	listed := make(map[int]bool, len(alive))
	for _, p := range alive {
		listed[p.pid] = true
	}
	return func(yield func(living) bool) {
		for _, p := range alive {
			if listed[p.parent] {
				if same, err := procid.SharesMemory(p.pid, p.parent); same && err == nil {
					continue
				}
			}
			if !yield(p) {
				return
			}
		}
	}
}

// fillDoubled says in an account where the kernel does not tell which processes have one address space.
func fillDoubled(a *account.Account) {
	own := os.Getpid()
	_, err := procid.SharesMemory(own, own)
	if err == nil {
		return
	}
	for _, name := range []string{"resident", "anonymous", "virtual", "proportional"} {
		name = "memory." + name + "_peak_bytes"
		if _, known := a.Number(name); known {
			a.Accuracy[name] = account.Bound
			a.Missing[name] = fmt.Sprintf("at most: children of vfork(2), which have their parents' memory, counted beside these: kcmp(2): %v", err)
		}
	}
}

// memoryOf reads a process's statm file: pages.
func memoryOf(pid int) (size, resident, shared uint64, err error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, 0, 0, err
	}
	_, err = fmt.Sscan(string(data), &size, &resident, &shared)
	return size, resident, shared, err
}

// waitedForCPU is how long a process's living threads waited for a CPU.
func waitedForCPU(pid int) (sum time.Duration) {
	tids, _ := procid.Threads(pid) // none of a process that has ended
	for _, tid := range tids {
		if sched, err := procid.ReadSchedstat(pid, tid); err == nil {
			sum += time.Duration(sched.Wait)
		}
	}
	return sum
}

// proportional adds up the memory of processes so that pages that several share
// count once: bytes in memory and swapped out. Processes that may not be looked at are left out;
// known says whether all could.
func proportional(alive []living) (pss, swapped uint64, known bool) {
	known = len(alive) > 0
	for p := range withOwnMemory(alive) {
		var share, swap uint64
		_, err := procid.ReadNumbers(procid.Path(p.pid, "smaps_rollup"), map[string]*uint64{"Pss": &share, "SwapPss": &swap})
		known = known && err == nil
		pss, swapped = pss+share, swapped+swap
	}
	return pss, swapped, known
}
