// SPDX-License-Identifier: Apache-2.0

package procid

import (
	"fmt"
	"math/bits"
	"unsafe"

	"golang.org/x/sys/unix"
)

// maxCPUs is what one call can report: more than any kernel is built for.
const maxCPUs = 16384

// CPUsAllowed returns on how many CPUs the process's main thread may run. It
// uses its own mask because unix.CPUSet ends at 1024 CPUs, where the system
// call fails on larger machines.
func CPUsAllowed(pid int) (int, error) {
	var mask [maxCPUs / 64]uint64
	n, _, errno := unix.RawSyscall(unix.SYS_SCHED_GETAFFINITY, uintptr(pid),
		unsafe.Sizeof(mask), uintptr(unsafe.Pointer(&mask)))
	if errno != 0 {
		return 0, fmt.Errorf("affinity of %d: %w", pid, GoneError(errno))
	}
	count := 0
	for _, word := range mask[:n/8] {
		count += bits.OnesCount64(word)
	}
	return count, nil
}
