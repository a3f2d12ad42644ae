// SPDX-License-Identifier: Apache-2.0

package system

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/attune-hpc/attune/internal/procid"
)

// cgroupFile is a knob of a cgroup; see the kernel's admin-guide on cgroup-v1
// and cgroup-v2.
type cgroupFile struct {
	name, controller string
	// version of cgroups that has it; 0: both, under this name.
	version      int
	what, values string
	examples     []string
	parse        func(string) (string, error)
	prefix       string
	// usage is the file that tells how much is used, where less than that is
	// refused for the reason in harm.
	usage, harm string
	// unfit says why a cgroup must be left as it is; nil: nothing stands against a change.
	unfit func(dir string) error
	// same says whether a value read is the one that was set; nil: equal.
	same func(set, read string) bool
	// undo is what the way back does not give back; empty: nothing.
	undo string
}

const (
	noLimit = "max"
	// maxPeriod of the CPU controller, microseconds.
	minPeriod, maxPeriod = 1000, 1000000
)

func cgroupFiles() []cgroupFile {
	const size, cpus = "bytes or max", "list of CPUs, e.g. 0-3,8"
	const killed = "processes would be killed"
	limit := []string{noLimit, "1G"}
	return []cgroupFile{
		{
			name: "cpu.weight", controller: "cpu", version: 2, values: "1 to 10000", examples: []string{"100", "10000"},
			what: "Share of the CPUs among siblings.", parse: whole(1, 10000),
		},
		{
			name: "cpu.max", controller: "cpu", version: 2, values: "QUOTA or max, or \"QUOTA PERIOD\", microseconds", examples: []string{noLimit},
			what: "CPU time in each period.", parse: parseCPUMax,
		},
		{
			name: "memory.high", controller: "memory", version: 2, values: size, examples: limit, same: sameBytes, parse: parseMemory,
			what: "Bytes from which on processes are slowed down and memory is reclaimed.",
		},
		{
			name: "memory.low", controller: "memory", version: 2, values: size, examples: limit, same: sameBytes, parse: parseMemory,
			what: "Bytes that are reclaimed only if nothing else can be.",
		},
		{
			name: "memory.max", controller: "memory", version: 2, values: size, examples: limit, same: sameBytes, parse: parseMemory, usage: "memory.current", harm: killed,
			what: "Bytes from which on the kernel kills. Not less than what is used.",
		},
		{
			name: "io.weight", controller: "io", version: 2, values: "1 to 10000", examples: []string{"100", "10000"}, prefix: "default ",
			what: "Share of I/O among siblings; devices with weights of their own keep them.", parse: whole(1, 10000),
		},
		{
			name: "cpu.shares", controller: "cpu", version: 1, values: "2 to 262144", examples: []string{"1024"},
			what: "Share of the CPUs among siblings.", parse: whole(2, 262144),
		},
		{
			name: "cpu.cfs_quota_us", controller: "cpu", version: 1, values: "microseconds from 1000, or -1: no limit", examples: []string{"-1"},
			what: "CPU time in each period.", parse: parseQuota,
		},
		{
			name: "cpu.cfs_period_us", controller: "cpu", version: 1, values: "1000 to 1000000 microseconds", examples: []string{"100000"},
			what: "Length of the period.", parse: whole(minPeriod, maxPeriod),
		},
		{
			name: "memory.soft_limit_in_bytes", controller: "memory", version: 1, values: size, examples: limit, same: sameBytes, parse: parseMemory1,
			what: "Bytes beyond which memory is reclaimed first when it is short.",
		},
		{
			name: "memory.limit_in_bytes", controller: "memory", version: 1, values: size, examples: limit, same: sameBytes, parse: parseMemory1, usage: "memory.usage_in_bytes", harm: killed,
			what: "Bytes from which on the kernel kills. Not less than what is used.",
		},
		{
			name: "memory.swappiness", controller: "memory", version: 1, values: "0 to 200", examples: []string{"0", "60"},
			what: "How readily memory is swapped.", parse: whole(0, 200),
		},
		{
			name: "blkio.weight", controller: "blkio", version: 1, values: "10 to 1000", examples: []string{"500"},
			what: "Share of I/O among siblings.", parse: whole(10, 1000),
		},
		{
			name: "cpuset.cpus", controller: "cpuset", values: cpus, examples: []string{"0"}, same: sameCPUs, unfit: mayRebind,
			undo: "; before Linux 6.2 a thread that has bound itself to some of the CPUs since the change loses that",
			what: "CPUs of all its processes. Refused before Linux 6.2 where a thread is bound to some of them, which it would lose.", parse: cpuList,
		},
		{
			name: "pids.max", controller: "pids", values: "1 to 4194304, or max", examples: []string{noLimit, "1000"}, parse: parseTasks,
			usage: "pids.current", harm: "no thread could start",
			what: "Threads that all its processes may have. Not less than there are.",
		},
	}
}

func cgroupKnobs() []knob {
	files := cgroupFiles()
	list := make([]knob, len(files))
	for i, f := range files {
		list[i] = knob{
			Knob: Knob{
				Name: "cgroup." + f.name, On: OnCgroup, Values: f.values, Examples: f.examples,
				Description: f.versions() + ". " + f.what,
				Privilege:   "write permission for the file: root, or a cgroup delegated to the user",
				Undo:        exactly + ", also after the process has ended" + f.undo,
			},
			parse:    f.parse,
			places:   cgroupPlace(f.controller, f.version, f.name),
			complete: f.complete,
			harm:     f.exceeded,
			open:     openCgroup(f.name, f.prefix),
			same:     f.same,
		}
	}
	return list
}

func (f cgroupFile) versions() string {
	if f.version == 0 {
		return "cgroup v1 and v2"
	}
	return "cgroup v" + strconv.Itoa(f.version)
}

// complete keeps the period of cpu.max where only the quota was asked for, and
// refuses what would hurt at once.
func (f cgroupFile) complete(t *Target, old, asked string) (string, error) {
	if _, period, ok := strings.Cut(old, " "); ok && f.name == "cpu.max" && !strings.Contains(asked, " ") {
		return asked + " " + period, nil
	}
	if f.usage == "" && f.unfit == nil { // nothing to look at
		return asked, nil
	}
	dir, err := t.cgroupDir(f.controller, f.version)
	if err == nil && f.unfit != nil {
		err = f.unfit(dir)
	}
	if err != nil {
		return "", err
	}
	if err := f.exceeded(t, Place{Path: dir}, asked); err != nil {
		return "", badValue("%w", err)
	}
	return asked, nil
}

// exceeded is an error if more is in use in a cgroup than a limit would allow.
func (f cgroupFile) exceeded(_ *Target, place Place, value string) error {
	limit, err := strconv.ParseInt(value, 10, 64)
	if f.usage == "" || err != nil || limit < 0 {
		return nil //nolint:nilerr // no limit
	}
	used, err := procid.ReadNumber(filepath.Join(place.Path, f.usage))
	if err != nil {
		return err
	}
	if uint64(limit) < used {
		return fmt.Errorf("%d is less than the %d in use, %s", limit, used, f.harm)
	}
	return nil
}

// parseMemory reads bytes or max.
func parseMemory(text string) (string, error) {
	if strings.EqualFold(text, noLimit) {
		return noLimit, nil
	}
	n, err := ParseSize(text)
	if err != nil || n < 0 {
		return "", badValue("%q is not a number of bytes, or %s", text, noLimit)
	}
	page := int64(os.Getpagesize())
	return strconv.FormatInt(n/page*page, 10), nil // as the kernel rounds
}

// parseTasks reads a number of threads, or max.
func parseTasks(text string) (string, error) {
	if strings.EqualFold(text, noLimit) {
		return noLimit, nil
	}
	const most = 1 << 22 // PID_MAX_LIMIT
	return whole(1, most)(text)
}

// parseMemory1 writes no limit as version 1 takes it.
func parseMemory1(text string) (string, error) {
	if text == "-1" || strings.EqualFold(text, noLimit) {
		return "-1", nil
	}
	return parseMemory(text)
}

// sameBytes: version 1 reads no limit back as the greatest number of pages.
func sameBytes(set, read string) bool {
	return boundless(set) && boundless(read)
}

func boundless(text string) bool {
	n, err := strconv.ParseInt(text, 10, 64)
	return text == noLimit || text == "-1" || err == nil && n > math.MaxInt64/2
}

func parseQuota(text string) (string, error) {
	if text == "-1" {
		return text, nil
	}
	return whole(minPeriod, math.MaxInt32)(text)
}

// parseCPUMax reads "QUOTA" or "QUOTA PERIOD".
func parseCPUMax(text string) (string, error) {
	quota, period, both := strings.Cut(strings.TrimSpace(text), " ")
	if quota != noLimit {
		n, err := whole(minPeriod, math.MaxInt32)(quota)
		if err != nil {
			return "", err
		}
		quota = n
	}
	if !both {
		return quota, nil
	}
	period, err := whole(minPeriod, maxPeriod)(strings.TrimSpace(period))
	return quota + " " + period, err
}
