// SPDX-License-Identifier: Apache-2.0

package procs

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/attune-hpc/attune/internal/exitcode"
)

// Parse reads process ids, each once.
func Parse(args []string) (pids []int, err error) {
	if len(args) == 0 {
		return nil, exitcode.UsageError(errors.New("no process to attach to"), "write: attune attach PID..., or --name PATTERN")
	}
	seen := make(map[int]bool)
	for _, arg := range args {
		pid, err := strconv.Atoi(arg)
		if err != nil || pid <= 0 {
			return nil, exitcode.UsageError(fmt.Errorf("%q is no process id", arg), "`ps` shows them")
		}
		if pid == os.Getpid() {
			return nil, exitcode.UsageError(errors.New("attune cannot attach to itself"), "name another process")
		}
		if !seen[pid] {
			seen[pid] = true
			pids = append(pids, pid)
		}
	}
	return pids, nil
}
