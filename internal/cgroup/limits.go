// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"iter"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/attune-hpc/attune/internal/procid"
)

// Limits are what a process' cgroup and those above it let it have together.
type Limits struct {
	// MemoryBytes; 0: no limit that can be seen from here.
	MemoryBytes uint64
	// CPUs is the CPU time by wall time; 0: as before.
	CPUs float64
}

// LimitsOf returns the limits of a process. One that is gone gives procid.ErrGone.
func LimitsOf(pid int) (Limits, error) {
	membership, mounts, err := Texts(pid)
	if err != nil {
		return Limits{}, err
	}
	return limits(membership, mounts), nil
}

// unlimited is where version 1 begins to mean no limit: a number of pages.
const unlimited = math.MaxInt64 / 2

func limits(membership, mounts string) Limits {
	memory, cpus := uint64(unlimited), math.Inf(1)
	for dir, unified := range upwards(membership, mounts, "memory") {
		name := "memory.limit_in_bytes"
		if unified {
			name = "memory.max"
		}
		if limit, err := procid.ReadNumber(filepath.Join(dir, name)); err == nil {
			memory = min(memory, limit)
		}
	}
	for dir, unified := range upwards(membership, mounts, "cpu") {
		cpus = min(cpus, quota(dir, unified))
	}
	var l Limits
	if memory < unlimited {
		l.MemoryBytes = memory
	}
	if !math.IsInf(cpus, 1) {
		l.CPUs = cpus
	}
	return l
}

// quota is the CPU time by wall time that one cgroup may have; infinite without a limit.
func quota(dir string, unified bool) float64 {
	read := func(name string) string {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return ""
		}
		return string(data)
	}
	words := strings.Fields(read("cpu.max"))
	if !unified {
		words = strings.Fields(read("cpu.cfs_quota_us") + " " + read("cpu.cfs_period_us"))
	}
	if len(words) != 2 {
		return math.Inf(1)
	}
	time, err := strconv.ParseFloat(words[0], 64) // "max" and -1: no limit
	period, periodErr := strconv.ParseFloat(words[1], 64)
	if err != nil || periodErr != nil || time <= 0 || period <= 0 {
		return math.Inf(1)
	}
	return time / period
}

// upwards are the directories of a process' cgroup and of those above it, in the hierarchy of
// a controller of version 1, or without that in version 2: unified. Those above what is
// mounted here cannot be seen; inside a container its own limit is that of what is mounted.
func upwards(membership, mounts, controller string) iter.Seq2[string, bool] {
	path, found := Path(membership, controller)
	unified := !found
	if unified {
		controller = ""
		path, _ = Path(membership, controller)
	}
	return func(yield func(dir string, unified bool) bool) {
		for ; path != ""; path = filepath.Dir(path) {
			dir, found := Dir(mounts, controller, path)
			if !found || !yield(dir, unified) || path == "/" {
				return
			}
		}
	}
}
