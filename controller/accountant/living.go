// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/procid"
)

// left is the account of a process that lives at the account's end, and what its
// living threads took: the rest is in the kernel's totals.
func left(p living, start time.Time) (account.Process, taken) {
	began := bootTime().Add(p.start)
	process := processOf(p.pid, p.parent, p.name, began.Sub(start), time.Since(began))
	process.Left, process.Threads = true, new(p.threads)
	rest := readThreads(p)
	if data, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", p.pid)); err == nil {
		process.Name = strings.TrimSuffix(string(data), "\n")
	}
	if status, err := procid.ReadStatus(procid.LiveThreadOf(p.pid)); err == nil && status.Peak != 0 {
		process.Memory.Resident = new(status.Peak)
	}
	all := p.done
	all.add(rest)
	fillProcess(&process, all)
	return process, rest
}

// leftWithChildren is the account of a process that lives at the account's end, and
// what it and all that it waited for took.
func leftWithChildren(p living, start time.Time) (account.Process, taken) {
	process, own := left(p, start)
	t, _ := readWhole(p.pid, true) // nothing if it has ended
	t.voluntary, t.involuntary = own.voluntary, own.involuntary
	return process, t
}

// readWhole reads what a process took and whatever it waited for, bytes and calls
// only if those are wanted. Times of children are in clock ticks. It fails if the process has
// ended and was waited for.
func readWhole(pid int, bytes bool) (t taken, err error) {
	stat, err := procid.ReadStat(pid)
	if err != nil {
		return t, err
	}
	own, _ := procid.CPUTime(pid) // it is not in ticks; 0 if the process has ended
	t = withChildren(stat, own)
	if bytes {
		_ = readIO(fmt.Sprintf("/proc/%d/io", pid), &t) // refused for a program with privileges
	}
	return t, nil
}

// withChildren is the time and the faults of a process, which has used the CPU for own, and
// of those that it waited for.
func withChildren(s procid.Stat, own time.Duration) (t taken) {
	t.user, t.system = ticks(s.UserTicks+s.ReapedUserTicks), ticks(s.SystemTicks+s.ReapedSystemTicks)
	t.cpu = max(t.user+t.system, ticks(s.ReapedUserTicks+s.ReapedSystemTicks)+own)
	t.minorFaults, t.majorFaults = s.MinorFaults+s.ReapedMinorFaults, s.MajorFaults+s.ReapedMajorFaults
	return t
}

func ticks(n uint64) time.Duration { return time.Duration(n) * procid.Tick }

// undone lists the threads of a process of which p.done has nothing. The kernel lists the first one
// when it is done with it, too, until the last one has ended.
func (p *living) undone() []int {
	tids, _ := procid.Threads(p.pid) // none of a process that has ended
	return slices.DeleteFunc(tids, func(tid int) bool { return p.firstDone && tid == p.pid })
}

// readThreads adds up what the threads of a process took that are undone. Threads that end
// meanwhile are left out: the kernel is done with them.
func readThreads(p living) (sum taken) {
	for _, tid := range p.undone() {
		if t, err := readThread(p.pid, tid); err == nil {
			sum.add(t)
		}
	}
	return sum
}

// readThread reads what one thread took. The files are the thread's own, without
// ended threads and reaped children.
func readThread(pid, tid int) (t taken, err error) {
	stat, err := procid.ReadThreadStat(pid, tid)
	if err != nil {
		return t, err
	}
	sched, err := procid.ReadSchedstat(pid, tid)
	if err != nil {
		return t, err
	}
	t.minorFaults, t.majorFaults = stat.MinorFaults, stat.MajorFaults
	t.cpu, t.wait = time.Duration(sched.Run), time.Duration(sched.Wait)
	t.user = t.cpu
	if all := stat.UserTicks + stat.SystemTicks; all > 0 {
		t.system = time.Duration(float64(t.cpu) * float64(stat.SystemTicks) / float64(all))
		t.user = t.cpu - t.system
	}
	dir := fmt.Sprintf("/proc/%d/task/%d/", pid, tid)
	if _, err := procid.ReadNumbers(dir+"status", map[string]*uint64{
		"voluntary_ctxt_switches": &t.voluntary, "nonvoluntary_ctxt_switches": &t.involuntary,
	}); err != nil {
		return t, err
	}
	err = readIO(dir+"io", &t)
	return t, err
}

// readIO reads an io file of /proc.
func readIO(path string, t *taken) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return parseIO(data, t)
}

func parseIO(data []byte, t *taken) error {
	var cancelled uint64
	_, err := procid.Numbers(data, map[string]*uint64{
		"rchar": &t.read, "wchar": &t.written, "syscr": &t.readCalls, "syscw": &t.writtenCalls,
		"read_bytes": &t.storageRead, "write_bytes": &t.storageWritten, "cancelled_write_bytes": &cancelled,
	})
	t.storageWritten -= min(t.storageWritten, cancelled)
	return err
}
