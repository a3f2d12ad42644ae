// SPDX-License-Identifier: Apache-2.0

package procid

import (
	"fmt"
	"os"
	"slices"
	"strconv"
)

// Threads lists the threads of a process, in the order in which they were
// started. [ErrGone] if it has ended. Where threads end meanwhile it may lack living
// ones, see [AllThreads].
func Threads(pid int) ([]int, error) {
	tids, err := AppendNumbers(nil, "/proc/"+strconv.Itoa(pid)+"/task")
	if err == nil && len(tids) == 0 {
		err = ErrGone
	}
	if err != nil {
		return nil, fmt.Errorf("threads of %d: %w", pid, err)
	}
	return tids, nil
}

// listings is how often the threads of a process are listed until two listings in
// succession are equal.
const listings = 6

// AllThreads is Threads for who must miss none. A listing goes on by its position when a
// thread that it has named ends, and so skips a living one. The next listing then lacks
// the ended thread: of two that are equal the first one is complete. Where threads come
// and go too fast for that, there is all that some listing had, and complete is false.
func AllThreads(pid int) (tids []int, complete bool, err error) {
	return settled(func() ([]int, error) { return Threads(pid) })
}

// settled lists until two listings are equal.
func settled(list func() ([]int, error)) (all []int, complete bool, err error) {
	var before []int
	for range listings {
		now, err := list()
		if err != nil {
			return nil, false, err
		}
		if slices.Equal(before, now) {
			return now, true, nil
		}
		have := all
		for _, tid := range now {
			if !slices.Contains(have, tid) { // in the first there is none twice
				all = append(all, tid)
			}
		}
		before = now
	}
	return all, false, nil
}

// AppendNumbers appends the entries of a directory that are numbers, in its own
// order: in /proc those are the processes. [ErrGone] if the process to which the
// directory belongs has ended.
func AppendNumbers(into []int, directory string) ([]int, error) {
	dir, err := os.Open(directory)
	if err != nil {
		return into, GoneError(err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return into, GoneError(err)
	}
	for _, name := range names {
		if number, err := strconv.Atoi(name); err == nil {
			into = append(into, number)
		}
	}
	return into, nil
}

// Runnable says whether a thread of a process runs or waits for a processor. [ErrGone] if
// the process has ended.
func Runnable(pid int) (bool, error) {
	threads, err := Threads(pid)
	if err != nil {
		return false, err
	}
	for _, tid := range threads {
		if stat, err := ReadThreadStat(pid, tid); err == nil && stat.State == 'R' { // else it may have ended
			return true, nil
		}
	}
	return false, nil
}
