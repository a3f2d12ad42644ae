// SPDX-License-Identifier: Apache-2.0

package uprobe

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Lease makes whoever opens the probed file to write wait until the kernel has taken
// the probes out, at most as long as /proc/sys/fs/lease-break-time says. The kernel keeps
// probes by inode and offset: in what is written there they would stand in the middle of
// instructions. It sends this process SIGIO when somebody waits, see Claimed. The lease
// ends when the last hold is closed and the probes are out. It is an error if somebody
// has the file open to write, if the file system knows no leases (NFS), or if the file
// is another user's and CAP_LEASE is missing.
func (a *Attachment) Lease() error {
	file := a.shared.target.file.Fd()
	// F_SETLEASE alone has the signal sent to the thread that calls it, and to nobody
	// when that thread has ended.
	_, err := unix.FcntlInt(file, unix.F_SETOWN, os.Getpid())
	if err == nil {
		_, err = unix.FcntlInt(file, unix.F_SETLEASE, unix.F_RDLCK)
	}
	if err != nil {
		return fmt.Errorf("lease of %s: %w", a.Path(), err)
	}
	return nil
}

// Claimed says whether somebody waits to write a file that has been leased.
func (a *Attachment) Claimed() bool {
	kind, err := unix.FcntlInt(a.shared.target.file.Fd(), unix.F_GETLEASE, 0)
	return err == nil && kind == unix.F_UNLCK
}
