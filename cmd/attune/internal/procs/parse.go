// SPDX-License-Identifier: Apache-2.0

package procs

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"

	"github.com/attune-hpc/attune/internal/exitcode"
)

// Leading reads the process ids that arguments begin with, each once, and returns what follows
// the last one. Errors have the code for usage.
func Leading(args []string) (pids []int, rest []string, err error) {
	for i, arg := range args {
		id, err := strconv.ParseInt(arg, 10, 64)
		switch {
		case errors.Is(err, strconv.ErrSyntax): // no number
			return pids, args[i:], nil
		case id < 1 || id > math.MaxInt32:
			return nil, nil, noID(arg)
		case int(id) == os.Getpid():
			return nil, nil, exitcode.UsageError(errors.New("attune cannot do that to itself"), "name another process")
		case !slices.Contains(pids, int(id)):
			pids = append(pids, int(id))
		}
	}
	return pids, nil, nil
}

// Parse is Leading where nothing may follow, and there is a process.
func Parse(args []string) ([]int, error) {
	pids, rest, err := Leading(args)
	switch {
	case err != nil:
		return nil, err
	case len(rest) > 0:
		return nil, noID(rest[0])
	case len(pids) == 0:
		return nil, exitcode.UsageError(errors.New("no process is given"), "`attune ps` shows them")
	}
	return pids, nil
}

func noID(arg string) error {
	return exitcode.UsageError(fmt.Errorf("%q is no process id", arg), "`attune ps` shows them")
}
