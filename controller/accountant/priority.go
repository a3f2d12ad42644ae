// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
)

// hurryPriority is that of this process while it enforces limits, if root lets it: on a busy machine
// looks would come late. See setpriority(2).
const hurryPriority = -10

// hurry has all threads of this process go before others, and returns what undoes that. What is
// forked meanwhile has the priority too.
func hurry() (calm func()) {
	got, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	usual := 20 - got // as the system call has it
	if err != nil || usual <= hurryPriority || unix.Setpriority(unix.PRIO_PROCESS, 0, hurryPriority) != nil {
		return func() {}
	}
	setPriority(hurryPriority)
	return func() { setPriority(usual) }
}

// setPriority sets the priority of all threads. One that is started meanwhile has that of whichever
// starts it.
func setPriority(priority int) {
	tids, _ := procid.Threads(os.Getpid()) // none without /proc
	for _, tid := range tids {
		_ = unix.Setpriority(unix.PRIO_PROCESS, tid, priority) // it may have ended
	}
}
