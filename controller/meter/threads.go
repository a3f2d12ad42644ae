// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/attune-hpc/attune/internal/procid"
)

// endedThreads returns those of the threads of a process that have ended. Threads
// are named by the ids that they have in the process' own pid namespace, which DMLib
// sees. Where the kernel does not tell, threads are taken as alive: a slot that a
// living thread still writes to must not be given away.
func endedThreads(pid int, tids []int) []int {
	nested, err := procid.Nested(pid)
	if err != nil {
		return nil
	}
	ended := func(tid int) bool {
		_, err := os.Stat(fmt.Sprintf("/proc/%d/task/%d", pid, tid))
		return errors.Is(err, fs.ErrNotExist)
	}
	if nested {
		alive, err := innerThreads(pid)
		if err != nil {
			return nil
		}
		ended = func(tid int) bool { return !alive[tid] }
	}
	return slices.DeleteFunc(tids, func(tid int) bool { return !ended(tid) })
}

// innerThreads reads the ids of the threads of a process in its own pid namespace.
func innerThreads(pid int) (map[int]bool, error) {
	tids, complete, err := procid.AllThreads(pid)
	if err != nil {
		return nil, err
	}
	if !complete {
		return nil, errors.New("threads come and go too fast to be listed")
	}
	alive := make(map[int]bool, len(tids))
	for _, tid := range tids {
		inner, err := procid.InnerID(pid, tid)
		if err == nil {
			alive[inner] = true
		} else if !errors.Is(err, procid.ErrGone) {
			return nil, err
		}
	}
	return alive, nil
}
