// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
)

// priorities are those of the threads of this process, as setpriority(2) has them.
func priorities(t *testing.T) map[int]int {
	t.Helper()
	tids, err := procid.Threads(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[int]int)
	for _, tid := range tids {
		if got, err := unix.Getpriority(unix.PRIO_PROCESS, tid); err == nil { // it may have ended
			all[tid] = 20 - got
		}
	}
	return all
}

// mayHurry says whether this process may, and leaves the priority of this thread as it is.
func mayHurry(t *testing.T, usual int) bool {
	t.Helper()
	if unix.Setpriority(unix.PRIO_PROCESS, 0, min(usual, hurryPriority)) != nil {
		return false
	}
	if err := unix.Setpriority(unix.PRIO_PROCESS, 0, usual); err != nil {
		t.Fatal(err)
	}
	return true
}

// TestPriorityComesBack: whoever may not hurry does not, and who does has its own priority again,
// in all threads. Those that are started meanwhile are not compared.
func TestPriorityComesBack(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, self := priorities(t), unix.Gettid()
	usual := before[self]
	hurried := usual
	if mayHurry(t, usual) {
		hurried = min(usual, hurryPriority)
	}
	calm := hurry()
	during := priorities(t)
	calm()
	after := priorities(t)
	if during[self] != hurried || after[self] != usual {
		t.Errorf("this thread has priority %d, then %d; want %d, then %d", during[self], after[self], hurried, usual)
	}
	for tid := range before {
		if _, lives := after[tid]; lives && (during[tid] != hurried || after[tid] != usual) {
			t.Errorf("thread %d has priority %d, then %d; want %d, then %d", tid, during[tid], after[tid], hurried, usual)
		}
	}
}
