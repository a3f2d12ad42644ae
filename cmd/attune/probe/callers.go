// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"github.com/attune-hpc/attune/controller/stack"
	"github.com/attune-hpc/attune/internal/objfile"
)

// callers names the code that calls come from, in processes of this machine. It is for one
// goroutine.
type callers map[int32]*stack.Space // nil: nothing can be known of it

// name is OBJECT:FUNCTION of the address that a call returns to; empty: the process has ended,
// or is not for this user to look at.
func (c callers) name(pid int32, address uint64) string {
	space, known := c[pid]
	if !known {
		space, _ = stack.NewSpace(func() ([]objfile.Image, error) { return objfile.Images(int(pid)) })
		c[pid] = space
	}
	if space == nil {
		return ""
	}
	space.Renew([]uint64{address})
	return space.Name(address, true)
}

// close closes all files.
func (c callers) close() {
	for _, space := range c {
		if space != nil {
			_ = space.Close() // read only
		}
	}
}
