// SPDX-License-Identifier: Apache-2.0

package system

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/cilium/ebpf/features"

	"github.com/attune-hpc/attune/internal/cpulist"
	"github.com/attune-hpc/attune/internal/procid"
)

// possibleCPUs lists them as a cpuset does; empty if that cannot be read.
func possibleCPUs() string {
	text, _ := os.ReadFile("/sys/devices/system/cpu/possible")
	return strings.TrimSpace(string(text))
}

// sameCPUs: see cgroupSlot.set.
func sameCPUs(set, read string) bool { return set == "" && read == possibleCPUs() }

// pinsKept is the version of Linux from which on threads keep the CPUs that they were bound to
// when those of their cpuset change, and change back.
const pinsKept = 6<<16 | 2<<8

// mayRebind refuses a cpuset in which a thread is bound to CPUs of its own, on a kernel that binds
// it to those of the cpuset instead: nobody would bind it again.
func mayRebind(dir string) error {
	kernel, err := features.LinuxVersionCode()
	if err != nil {
		return err
	}
	return mayRebindOn(kernel, dir)
}

func mayRebindOn(kernel uint32, dir string) error {
	if kernel >= pinsKept {
		return nil
	}
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // removed meanwhile
		case err != nil || entry.IsDir():
			return err
		case entry.Name() == "cgroup.threads" || entry.Name() == "tasks": // of version 2 and 1
			return unbound(path)
		}
		return nil
	})
}

// unbound is an error if a thread in a list of a cgroup may not run on all CPUs of that.
func unbound(list string) error {
	data, err := os.ReadFile(list)
	if err != nil {
		return err
	}
	all, err := effectiveCPUs(filepath.Dir(list))
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(data)) {
		tid, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil {
			return err
		}
		cpus, err := procid.Affinity(tid)
		switch {
		case errors.Is(err, procid.ErrGone):
		case err != nil:
			return err
		case !slices.Equal(cpus, all):
			return fmt.Errorf("thread %d is bound to CPUs %s of %s, which it would lose for good before Linux 6.2", tid, cpulist.Format(cpus), cpulist.Format(all))
		}
	}
	return nil
}

// effectiveCPUs are those that the threads of a cgroup may run on. Where it has none of its own
// they are its parent's.
func effectiveCPUs(dir string) ([]int, error) {
	for ; ; dir = filepath.Dir(dir) {
		for _, file := range []string{"cpuset.cpus.effective", "cpuset.effective_cpus"} { // of version 2 and 1
			data, err := os.ReadFile(filepath.Join(dir, file))
			if err == nil {
				return cpulist.Parse(strings.TrimSpace(string(data)))
			}
			if !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
				return nil, err
			}
		}
	}
}
