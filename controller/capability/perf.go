// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"errors"

	"golang.org/x/sys/unix"
)

const remedyPerf = "lower kernel.perf_event_paranoid, or grant CAP_PERFMON"

// openCounter opens one counter of the calling process and closes it.
func openCounter(kind uint32, event uint64, withKernel bool) error {
	attributes := unix.PerfEventAttr{Type: kind, Config: event, Size: unix.PERF_ATTR_SIZE_VER5, Bits: unix.PerfBitDisabled}
	if !withKernel {
		attributes.Bits |= unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv
	}
	fd, err := unix.PerfEventOpen(&attributes, 0, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

func perfSoftware(*node) finding {
	return counter(unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_TASK_CLOCK)
}

func perfHardware(*node) finding {
	return counter(unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_CPU_CYCLES)
}

func counter(kind uint32, event uint64) finding {
	if openCounter(kind, event, true) == nil {
		return available("")
	}
	err := openCounter(kind, event, false)
	switch {
	case err == nil:
		return degraded("own processes, user mode", "the kernel's part may not be counted", remedyPerf)
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.EOPNOTSUPP):
		return unavailable("the processor offers no counters here", "on a virtual machine, have the host pass them through")
	}
	return refused(err, remedyPerf, "needs a kernel with CONFIG_PERF_EVENTS")
}
