// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
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
	rest := readThreads(p.pid)
	if data, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", p.pid)); err == nil {
		process.Name = strings.TrimSuffix(string(data), "\n")
	}
	if status, err := procid.ReadStatus(p.pid); err == nil && status.Peak != 0 {
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
	t := readWhole(p.pid, true)
	t.voluntary, t.involuntary = own.voluntary, own.involuntary
	return process, t
}

// readWhole reads what a process took and whatever it waited for, bytes and calls
// only if those are wanted. Times of children are in clock ticks.
func readWhole(pid int, bytes bool) (t taken) {
	if data, err := procid.ReadFile(pid, "stat", statBytes); err == nil {
		var children time.Duration
		t.user, t.system, children, t.minorFaults, t.majorFaults = withChildren(string(data))
		own, _ := procid.CPUTime(pid) // it is not in ticks; 0 if the process has ended
		t.cpu = max(t.user+t.system, children+own)
	}
	if bytes {
		_ = readIO(fmt.Sprintf("/proc/%d/io", pid), &t) // refused for a program with privileges
	}
	return t
}

// statBytes is more than a stat file has.
const statBytes = 4096

// withChildren reads from a stat file the times and faults of a process and of those
// that it waited for, whose times are in children by themselves too; see
// proc_pid_stat(5).
func withChildren(stat string) (user, system, children time.Duration, minor, major uint64) {
	words := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	field := func(number int) uint64 { // as the manual page has it
		if number-3 >= len(words) {
			return 0
		}
		n, _ := strconv.ParseUint(words[number-3], 10, 64) // the kernel writes numbers
		return n
	}
	ticks := func(a, b int) time.Duration { return time.Duration(field(a)+field(b)) * clockTick }
	return ticks(14, 16), ticks(15, 17), ticks(16, 17), field(10) + field(11), field(12) + field(13)
}

// readThreads adds up what the living threads of a process took. Threads that end
// meanwhile are left out: the kernel is done with them.
func readThreads(pid int) (sum taken) {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return sum
	}
	for _, task := range tasks {
		dir := fmt.Sprintf("/proc/%d/task/%s/", pid, task.Name())
		if t, err := readThread(dir); err == nil {
			sum.add(t)
		}
	}
	return sum
}

// readThread reads what one thread took. The files are the thread's own, without
// ended threads and reaped children.
func readThread(dir string) (t taken, err error) {
	data, err := os.ReadFile(dir + "stat")
	if err != nil {
		return t, err
	}
	stat, err := procid.ParseStat(data)
	if err != nil {
		return t, err
	}
	t.minorFaults, t.majorFaults = stat.MinorFaults, stat.MajorFaults
	if t.cpu, t.wait, err = runTimes(dir); err != nil {
		return t, err
	}
	t.user = t.cpu
	if ticks := stat.UserTicks + stat.SystemTicks; ticks > 0 {
		t.system = time.Duration(float64(t.cpu) * float64(stat.SystemTicks) / float64(ticks))
		t.user = t.cpu - t.system
	}
	if err := fields(dir+"status", map[string]*uint64{
		"voluntary_ctxt_switches:": &t.voluntary, "nonvoluntary_ctxt_switches:": &t.involuntary,
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
	err := parseFields(data, map[string]*uint64{
		"rchar:": &t.read, "wchar:": &t.written, "syscr:": &t.readCalls, "syscw:": &t.writtenCalls,
		"read_bytes:": &t.storageRead, "write_bytes:": &t.storageWritten, "cancelled_write_bytes:": &cancelled,
	})
	t.storageWritten -= min(t.storageWritten, cancelled)
	return err
}

// fields reads the numbers behind names in a file of names and numbers.
func fields(path string, into map[string]*uint64) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return parseFields(data, into)
}

func parseFields(data []byte, into map[string]*uint64) (err error) {
	for line := range bytes.Lines(data) {
		words := bytes.Fields(line)
		if len(words) < 2 || into[string(words[0])] == nil {
			continue
		}
		if *into[string(words[0])], err = strconv.ParseUint(string(words[1]), 10, 64); err != nil {
			return fmt.Errorf("%s %w", words[0], err)
		}
	}
	return nil
}

// runTimes are the CPU time of a thread and how long it waited for a CPU, to the
// nanosecond, as of the last tick or switch.
func runTimes(dir string) (cpu, wait time.Duration, err error) {
	data, err := os.ReadFile(dir + "schedstat")
	if err != nil {
		return 0, 0, err
	}
	words := bytes.Fields(data)
	if len(words) < 2 {
		return 0, 0, fmt.Errorf("%q is no time of a thread", data)
	}
	ran, err := strconv.ParseInt(string(words[0]), 10, 64)
	if err != nil {
		return 0, 0, err
	}
	waited, err := strconv.ParseInt(string(words[1]), 10, 64)
	return time.Duration(ran), time.Duration(waited), err
}
