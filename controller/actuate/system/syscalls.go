// SPDX-License-Identifier: Apache-2.0

package system

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/cpulist"
	"github.com/attune-hpc/attune/internal/procid"
)

// System calls that x/sys does not have, or not as needed here. Each returns
// the errno as error.

func affinityOf(tid int) (string, error) {
	cpus, err := procid.Affinity(tid)
	return cpulist.Format(cpus), err
}

func setAffinity(tid int, value string) error {
	cpus, err := cpulist.Parse(value)
	if err != nil {
		return err
	}
	var mask [cpulist.Max / 64]uint64 // unix.CPUSet ends at 1024 CPUs
	for _, cpu := range cpus {
		mask[cpu/64] |= 1 << (cpu % 64)
	}
	_, _, errno := unix.RawSyscall(unix.SYS_SCHED_SETAFFINITY, uintptr(tid),
		unsafe.Sizeof(mask), uintptr(unsafe.Pointer(&mask)))
	return errnoError(errno)
}

func schedSetScheduler(tid, policy int, priority int32) error {
	_, _, errno := unix.RawSyscall(unix.SYS_SCHED_SETSCHEDULER, uintptr(tid),
		uintptr(policy), uintptr(unsafe.Pointer(&priority)))
	return errnoError(errno)
}

// ioprioWhoProcess names one thread; see ioprio_set(2).
const ioprioWhoProcess = 1

func ioprioGet(tid int) (int, error) {
	raw, _, errno := unix.RawSyscall(unix.SYS_IOPRIO_GET, ioprioWhoProcess, uintptr(tid), 0)
	return int(raw), errnoError(errno)
}

func ioprioSet(tid, raw int) error {
	_, _, errno := unix.RawSyscall(unix.SYS_IOPRIO_SET, ioprioWhoProcess, uintptr(tid), uintptr(raw))
	return errnoError(errno)
}

// processMadvise advises about one range and returns how many bytes it did.
func processMadvise(pidfd int, from, length uint64, advice int) (int, error) {
	vector := unix.RemoteIovec{Base: uintptr(from), Len: int(length)}
	n, _, errno := unix.Syscall6(unix.SYS_PROCESS_MADVISE, uintptr(pidfd),
		uintptr(unsafe.Pointer(&vector)), 1, uintptr(advice), 0, 0)
	return int(n), errnoError(errno)
}

func errnoError(errno unix.Errno) error {
	if errno != 0 {
		return errno
	}
	return nil
}
