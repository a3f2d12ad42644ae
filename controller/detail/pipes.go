// SPDX-License-Identifier: Apache-2.0

package detail

import (
	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/proto/attune/series"
)

// readPipes reads the pipes that are next in turn, at most so many.
func (r *Reader) readPipes(p *process, most int, to *series.Details) (used int) {
	if !p.table.complete {
		return 0
	}
	out := &series.Rows[series.Pipe]{Total: p.table.pipes.total}
	var trouble trouble
	for _, e := range p.pipes.next(p.table.pipes.settled, most) {
		item := series.Pipe{FD: e.fd, Inode: e.inode, Writes: e.writes}
		err := p.borrow(e, func(fd int) error { return readPipe(fd, &item) })
		if trouble.add(err); err == nil {
			out.Items = append(out.Items, item)
		}
	}
	out.Error = trouble.text()
	to.Pipes = out
	return len(out.Items)
}

// readPipe reads how much a pipe can hold and how much it does.
func readPipe(fd int, into *series.Pipe) error {
	capacity, err := unix.FcntlInt(uintptr(fd), unix.F_GETPIPE_SZ, 0)
	if err != nil {
		return err
	}
	// FIONREAD by another name.
	queued, err := unix.IoctlGetInt(fd, unix.TIOCINQ)
	into.CapacityBytes, into.QueuedBytes = uint64(capacity), uint64(queued)
	return err
}
