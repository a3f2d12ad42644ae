// SPDX-License-Identifier: Apache-2.0

package procid

import (
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// CPUTime returns the CPU time of all threads of a process, those that have ended among
// them, by the process' CPU clock, which anybody may read: the kernel makes its number
// of the pid (CPUCLOCK_SCHED).
func CPUTime(pid int) (time.Duration, error) {
	const schedule = 2
	var now unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|schedule), &now); err != nil {
		return 0, fmt.Errorf("CPU clock of process %d: %w", pid, err)
	}
	return time.Duration(now.Nano()), nil
}

// Schedstat is what the scheduler has counted of a thread, nanoseconds: Run of a
// processor, Wait for one.
type Schedstat struct{ Run, Wait uint64 }

// maxSchedstatBytes is more than three numbers take.
const maxSchedstatBytes = 128

// ReadSchedstat reads the schedstat file of one thread, as of the last tick or switch.
// [ErrGone] if it has ended, or is not of the process.
func ReadSchedstat(pid, tid int) (Schedstat, error) {
	data, err := ReadFile(pid, "task/"+strconv.Itoa(tid)+"/schedstat", maxSchedstatBytes)
	if err != nil {
		return Schedstat{}, err
	}
	return ParseSchedstat(data)
}

// ParseSchedstat parses the content of a schedstat file, "run wait timeslices".
func ParseSchedstat(data []byte) (Schedstat, error) {
	word, rest := nextWord(data)
	run, ran := parseUint(word)
	word, _ = nextWord(rest)
	wait, waited := parseUint(word)
	if !ran || !waited {
		return Schedstat{}, fmt.Errorf("%w: schedstat %q", ErrMalformed, data)
	}
	return Schedstat{run, wait}, nil
}
