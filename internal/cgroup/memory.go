// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"math"
	"path/filepath"

	"github.com/attune-hpc/attune/internal/procid"
)

// AvailableMemory returns how many bytes a process could take before somebody has
// to go without: what the kernel takes to be available on the node, and what the
// limits of the process' cgroup and of those above it leave, whichever is less.
// File pages that are not in use count as free. A process that is gone gives
// procid.ErrGone.
func AvailableMemory(pid int) (uint64, error) {
	membership, mounts, err := Texts(pid)
	if err != nil {
		return 0, err
	}
	node, err := procid.ReadField("/proc/meminfo", "MemAvailable")
	if err != nil {
		return 0, err
	}
	return min(node, leftBelow(membership, mounts)), nil
}

// memoryFiles are those of one version that say what a cgroup may have and has.
type memoryFiles struct{ limit, usage, inactive string }

// leftBelow is what the limits of a process' cgroups leave; without limits,
// math.MaxUint64.
func leftBelow(membership, mounts string) uint64 {
	left := uint64(math.MaxUint64)
	for dir, unified := range upwards(membership, mounts, "memory") {
		files := memoryFiles{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"}
		if unified {
			files = memoryFiles{"memory.max", "memory.current", "inactive_file"}
		}
		left = min(left, files.left(dir))
	}
	return left
}

// left is what one cgroup's limit leaves. One without a limit, as the root is, and
// one that cannot be read leave everything.
func (f memoryFiles) left(dir string) uint64 {
	limit, err := procid.ReadNumber(filepath.Join(dir, f.limit))
	if err != nil {
		return math.MaxUint64
	}
	usage, err := procid.ReadNumber(filepath.Join(dir, f.usage))
	if err != nil {
		return math.MaxUint64
	}
	inactive, err := procid.ReadField(filepath.Join(dir, "memory.stat"), f.inactive)
	if err != nil {
		inactive = 0
	}
	used := usage - min(usage, inactive)
	return limit - min(limit, used)
}
