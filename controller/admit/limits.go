// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/internal/procid"
)

// limitsOf reads what a running process has to put a memory file into. What cannot
// be read is no limit.
func limitsOf(pid int) (l shm.Limits) {
	tids, _ := procid.Threads(pid)
	l.Threads = len(tids)
	var addresses unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_AS, nil, &addresses); err == nil && addresses.Cur != unix.RLIM_INFINITY {
		l.Addresses = max(addresses.Cur, 1)
	}
	status, _ := procid.ReadStatus(pid)
	l.Locked = status.Locked > 0
	return l
}
