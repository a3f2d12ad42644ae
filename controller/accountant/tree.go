// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"cmp"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/clock"
)

// bootTime is the moment from which times since boot count, on the wall's clock.
func bootTime() time.Time {
	return time.Now().Add(-clock.SinceBoot())
}

// maxTree is how many processes are listed where not all are wanted.
const maxTree = 256

// leftOut is what is not in a list of processes that would be too long.
type leftOut struct {
	wanted   bool
	count    uint64
	mark     uint64 // the most resident memory of one of them
	unmarked bool   // of some that is not known
}

// leaveOut cuts a list that has become twice as long as wanted down to what comes first in
// the order, with the resident memory of the others in left.
func leaveOut[T any](left *leftOut, list []T, order func(a, b T) int, resident func(T) uint64) []T {
	if !left.wanted || len(list) < 2*maxTree {
		return list
	}
	slices.SortStableFunc(list, order)
	for _, p := range list[maxTree:] {
		mark := resident(p)
		left.mark, left.unmarked = max(left.mark, mark), left.unmarked || mark == 0
	}
	left.count += uint64(len(list) - maxTree)
	clear(list[maxTree:])
	return list[:maxTree]
}

// fill says in an account that there is more.
func (l *leftOut) fill(a *account.Account) {
	if l.count > 0 {
		a.Missing["tree"] = account.LeftOut(l.count)
	}
}

// processOf is a process's account without what it took.
func processOf(pid, parent int, name string, start, wall time.Duration) account.Process {
	// Clocks are read one after another: nothing began before the account.
	return account.Process{PID: pid, Parent: parent, Name: name, StartSeconds: max(0, start.Seconds()), WallSeconds: wall.Seconds()}
}

func fillProcess(p *account.Process, t taken) {
	p.CPUSeconds, p.UserSeconds, p.SystemSeconds = new(t.cpu.Seconds()), new(t.user.Seconds()), new(t.system.Seconds())
	p.IO, p.ContextSwitches, p.Faults = t.io(), t.switches(), t.faults()
}

// exitOf is a wait status in an account.
func exitOf(status unix.WaitStatus) *account.Exit {
	if status.Signaled() {
		return &account.Exit{Type: account.ExitSignal, Signal: account.SignalName(status.Signal())}
	}
	return &account.Exit{Type: account.ExitNormal, Code: new(status.ExitStatus())}
}

// sortTree orders processes by their starts, the root first.
func sortTree(tree []account.Process, root int) {
	slices.SortStableFunc(tree, func(a, b account.Process) int {
		if (a.PID == root) != (b.PID == root) {
			return map[bool]int{true: -1, false: 1}[a.PID == root]
		}
		return cmp.Or(cmp.Compare(a.StartSeconds, b.StartSeconds), cmp.Compare(a.PID, b.PID))
	})
}
