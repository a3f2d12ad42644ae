// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/bpf/taskaccount"
	"github.com/attune-hpc/attune/internal/account"
)

func (k *kernel) fill(a *account.Account, start time.Time, _ unix.Rusage, _ taken) (mark uint64, all bool) {
	totals, n, still, err := k.atRest()
	k.mu.Lock()
	defer k.mu.Unlock()
	if err = errors.Join(err, k.err); err != nil {
		for _, name := range takenFields {
			a.Missing[name] = err.Error()
		}
		return 0, false
	}
	sum := takenOf(totals.Taken)
	for _, p := range k.ends {
		if k.try(p) {
			sum.subtract(takenOf(p.Taken))
			continue
		}
		a.Tree = append(a.Tree, ended(p, start.Add(-k.offset)))
	}
	for _, p := range n.alive {
		process, rest := left(p, start)
		sum.add(rest)
		a.Tree = append(a.Tree, process)
	}
	sortTree(a.Tree, k.root)
	a.Processes = account.Processes{
		Total: new(totals.Processes - uint64(len(k.tried))), Peak: new(totals.Peak), Left: new(uint64(len(n.alive))),
	}
	fillKernelAccuracy(a, sum, totals, still)
	if k.files != nil {
		fillFiles(a, k.files, len(n.alive) > 0)
	}
	k.left.fill(a)
	mark, all = residentMark(a)
	return max(mark, k.left.mark), all && !k.left.unmarked
}

// fillKernelAccuracy sets the account's sums, and says how good they and the numbers of
// processes are. still is that of atRest.
func fillKernelAccuracy(a *account.Account, sum taken, totals taskaccount.Totals, still bool) {
	accuracy, count := account.Exact, account.Exact
	if *a.Processes.Left > 0 || !still {
		accuracy = account.Sampled
	}
	if totals.LostMembers > 0 {
		accuracy, count = account.Bound, account.Bound
		a.Missing["processes.total"] = "at least: more processes were alive at one time than can be followed"
	}
	fillTaken(a, sum, accuracy, kernelSource)
	a.Note(count, kernelSource, "processes.total", "processes.peak", "processes.left")
	if totals.LostProcesses > 0 {
		a.Missing["tree"] = "processes are missing that found the buffer full; the totals have them"
	}
	a.Cost.LostEvents = totals.LostProcesses + totals.LostMembers
}

// residentMark is the most resident memory that a single process of the tree had, and
// whether that of every process is known.
func residentMark(a *account.Account) (mark uint64, all bool) {
	all = a.Cost.LostEvents == 0
	for _, p := range a.Tree {
		if p.Memory.Resident == nil {
			all = false
			continue
		}
		mark = max(mark, *p.Memory.Resident)
	}
	return mark, all
}

// ended is the account of a process that the kernel is done with.
func ended(p taskaccount.Process, start time.Time) account.Process {
	t := takenOf(p.Taken)
	process := processOf(p.PID, p.Parent, p.Name, bootTime().Add(p.Start).Sub(start), p.End-p.Start)
	process.Threads = new(p.Threads)
	process.Exit = exitOf(p.Status)
	fillProcess(&process, t)
	page := uint64(os.Getpagesize())
	if p.ResidentPages != 0 {
		process.Memory.Resident = new(p.ResidentPages * page)
	}
	if p.VirtualPages != 0 {
		process.Memory.Virtual = new(p.VirtualPages * page)
	}
	return process
}

// settleTime is how long the kernel may take from a process's end to the last
// switch of its threads. It takes microseconds; a machine may be very busy.
const settleTime = 2 * time.Second

// restTries bounds how often a moment is looked for at which no process begins or ends.
const restTries = 100

// atRest returns the totals, and what there is, of one moment: each process is in the totals or
// alive. Where processes that the command left behind begin and end all the time, still is false and
// one that ended meanwhile may be in neither.
func (k *kernel) atRest() (totals taskaccount.Totals, n now, still bool, err error) {
	for range restTries {
		var after taskaccount.Totals
		if totals, err = k.settle(); err != nil {
			return totals, n, false, err
		}
		if n, err = k.look(); err != nil {
			return totals, n, false, err
		}
		if after, err = k.accounts.Totals(); err != nil {
			return totals, n, false, err
		}
		// The kernel notes the end of a process before it counts it.
		if after.Processes == totals.Processes && after.Done == totals.Done && totals.Alive == uint64(len(n.alive)) {
			return totals, n, true, nil
		}
	}
	return totals, n, false, nil
}

// settle waits until what has ended is added up.
func (k *kernel) settle() (taskaccount.Totals, error) {
	for end := time.Now().Add(settleTime); ; time.Sleep(100 * time.Microsecond) {
		totals, err := k.accounts.Totals()
		switch {
		case err != nil:
			return totals, err
		case totals.Settled():
			return totals, nil
		case time.Now().After(end):
			return totals, errors.New("processes have ended and the kernel is not done with them")
		}
	}
}
