// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"errors"

	"github.com/attune-hpc/attune/internal/procid"
)

// threadAlive tells of the threads of a process by the ids that they have in
// the process' own pid namespace, which DMLib sees. Where their list cannot be
// read all are taken as alive: a slot that a living thread still writes to
// must not be given away.
func threadAlive(pid int) func(int) bool {
	alive, err := innerThreads(pid)
	return func(tid int) bool { return err != nil || alive[tid] }
}

// innerThreads reads the ids of the threads of a process. One that ends
// meanwhile is left out.
func innerThreads(pid int) (map[int]bool, error) {
	tids, err := procid.Threads(pid)
	if err != nil {
		return nil, err
	}
	alive := make(map[int]bool, len(tids))
	for _, tid := range tids {
		inner, err := procid.InnerID(pid, tid)
		switch {
		case err == nil:
			alive[inner] = true
		case !errors.Is(err, procid.ErrGone):
			return nil, err
		}
	}
	return alive, nil
}
