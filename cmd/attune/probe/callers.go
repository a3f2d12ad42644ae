// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"github.com/attune-hpc/attune/controller/stack"
	"github.com/attune-hpc/attune/internal/objfile"
)

// callers names the code that calls come from, in processes of this machine. It is for one
// goroutine.
type callers map[int32]*stack.Space

// name is OBJECT:FUNCTION of the address that a call returns to; empty: the process has ended,
// or is not for this user to look at.
func (c callers) name(pid int32, address uint64) string {
	space := c[pid]
	if space == nil {
		var err error
		if space, err = stack.NewSpace(func() ([]objfile.Image, error) { return objfile.Images(int(pid)) }); err != nil {
			return ""
		}
		c[pid] = space
	}
	space.Renew([]uint64{address})
	return space.Name(address, true)
}

// forget closes the files of a process that has ended.
func (c callers) forget(pid int32) {
	if space := c[pid]; space != nil {
		_ = space.Close() // read only
		delete(c, pid)
	}
}

// close closes all files.
func (c callers) close() {
	for pid := range c {
		c.forget(pid)
	}
}
