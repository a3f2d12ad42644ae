// SPDX-License-Identifier: Apache-2.0

package sample

import (
	"fmt"
	"os"
	"strconv"

	"github.com/attune-hpc/attune/internal/procid"
)

// listThreads appends the ids of a process's threads. Names that are no
// numbers are left out.
func listThreads(task string, into []int) ([]int, error) {
	dir, err := os.Open(task)
	if err != nil {
		return into, fmt.Errorf("threads: %w", procid.GoneError(err))
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return into, fmt.Errorf("threads: %w", procid.GoneError(err))
	}
	for _, name := range names {
		if tid, err := strconv.Atoi(name); err == nil {
			into = append(into, tid)
		}
	}
	return into, nil
}
