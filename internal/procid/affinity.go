// SPDX-License-Identifier: Apache-2.0

package procid

import (
	"fmt"
	"math/bits"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/cpulist"
)

// affinityMask has a bit per CPU; unix.CPUSet ends at 1024 of them, where the
// system call fails on larger machines.
type affinityMask [cpulist.Max / 64]uint64

func affinity(tid int) (mask affinityMask, err error) {
	_, _, errno := unix.RawSyscall(unix.SYS_SCHED_GETAFFINITY, uintptr(tid),
		unsafe.Sizeof(mask), uintptr(unsafe.Pointer(&mask)))
	if errno != 0 {
		return mask, fmt.Errorf("affinity of %d: %w", tid, GoneError(errno))
	}
	return mask, nil
}

// CPUsAllowed returns on how many CPUs the process's main thread may run.
func CPUsAllowed(pid int) (int, error) {
	mask, err := affinity(pid)
	count := 0
	for _, word := range mask {
		count += bits.OnesCount64(word)
	}
	return count, err
}

// Affinity returns the CPUs that a thread may run on, ascending; of a process'
// id, its main thread, and of 0 the caller.
func Affinity(tid int) ([]int, error) {
	mask, err := affinity(tid)
	var cpus []int
	for i, word := range mask {
		for ; word != 0; word &= word - 1 {
			cpus = append(cpus, 64*i+bits.TrailingZeros64(word))
		}
	}
	return cpus, err
}
