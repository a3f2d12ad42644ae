// SPDX-License-Identifier: Apache-2.0

package procid

import (
	"fmt"
	"iter"
)

// List returns the ids of the processes that there are, kernel threads and
// zombies included, in no order.
func List() ([]int, error) {
	pids, err := AppendNumbers(nil, "/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	return pids, nil
}

// maxGenerations bounds the way up: ids that are used again could lead round and round.
const maxGenerations = 256

// Ancestors goes up from a process to its parent, that of the parent and so on, as far as
// this user may see. 0 is last: the kernel, or a process outside of the pid namespace.
func Ancestors(pid int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for n := 0; pid > 0 && n < maxGenerations; n++ {
			stat, err := ReadStat(pid)
			if err != nil || !yield(stat.ParentPID) {
				return
			}
			pid = stat.ParentPID
		}
	}
}
