// SPDX-License-Identifier: Apache-2.0

package detail

import (
	"golang.org/x/sys/unix"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// readPipes reads the pipes that are next in turn, at most so many.
func (p *process) readPipes(most int) *attunev1.PipeDetails {
	out := &attunev1.PipeDetails{Total: uint32(p.table.pipes.total)}
	var trouble trouble
	for _, e := range p.pipes.next(p.table.pipes.settled, most) {
		item := &attunev1.PipeDetail{Fd: int32(e.fd), Inode: e.inode, Writes: e.writes}
		err := p.borrow(e, func(fd int) error { return readPipe(fd, item) })
		if trouble.add(err); err == nil {
			out.Items = append(out.Items, item)
		}
	}
	out.Error = trouble.text()
	return out
}

// readPipe reads how much a pipe can hold and how much it does.
func readPipe(fd int, into *attunev1.PipeDetail) error {
	capacity, err := unix.FcntlInt(uintptr(fd), unix.F_GETPIPE_SZ, 0)
	if err != nil {
		return err
	}
	// FIONREAD by another name.
	queued, err := unix.IoctlGetInt(fd, unix.TIOCINQ)
	into.CapacityBytes, into.QueuedBytes = uint32(capacity), uint32(queued)
	return err
}
