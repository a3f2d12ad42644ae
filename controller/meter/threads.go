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

// listings is how often the threads of a process are listed until two listings in
// succession are equal.
const listings = 5

var errRestless = errors.New("threads come and go too fast to be listed")

// innerThreads reads the ids of the threads of a process in its own pid namespace. A
// listing goes on by its position when a thread that it has named ends, and so skips
// a living one. The next listing then lacks the ended thread: of two that are equal the
// first one is complete.
func innerThreads(pid int) (map[int]bool, error) {
	before, err := sortedThreads(pid)
	for range listings {
		if err != nil {
			return nil, err
		}
		alive := make(map[int]bool, len(before))
		for _, tid := range before {
			inner, err := procid.InnerID(pid, tid)
			if err == nil {
				alive[inner] = true
			} else if !errors.Is(err, procid.ErrGone) {
				return nil, err
			}
		}
		var after []int
		if after, err = sortedThreads(pid); slices.Equal(before, after) {
			return alive, err
		}
		before = after
	}
	return nil, errRestless
}

func sortedThreads(pid int) ([]int, error) {
	tids, err := procid.Threads(pid)
	slices.Sort(tids)
	return tids, err
}
