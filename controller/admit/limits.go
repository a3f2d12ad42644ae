// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"bytes"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/internal/procid"
)

// statusBytes is more than a status file of /proc has.
const statusBytes = 64 << 10

// limitsOf reads what a running process has to put a memory file into. What cannot
// be read is no limit.
func limitsOf(pid int) (l shm.Limits) {
	tids, _ := procid.Threads(pid)
	l.Threads = len(tids)
	var addresses unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_AS, nil, &addresses); err == nil && addresses.Cur != unix.RLIM_INFINITY {
		l.Addresses = max(addresses.Cur, 1)
	}
	status, _ := procid.ReadFile(pid, "status", statusBytes)
	l.Locked = hasLocked(status)
	return l
}

// hasLocked says whether a process has locked memory, as its status tells.
func hasLocked(status []byte) bool {
	for line := range bytes.Lines(status) {
		if kilobytes, ok := bytes.CutPrefix(line, []byte("VmLck:")); ok {
			return len(bytes.Trim(kilobytes, " \t0kB\n")) > 0
		}
	}
	return false
}
