// SPDX-License-Identifier: Apache-2.0

package procid

import (
	"fmt"
	"os"
	"strconv"
)

// Threads lists the threads of a process, in the order in which they were
// started. [ErrGone] if it has ended.
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
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/stat", pid, tid))
		if err != nil {
			continue // it has ended
		}
		if state, err := ParseState(text); err == nil && state == 'R' {
			return true, nil
		}
	}
	return false, nil
}
