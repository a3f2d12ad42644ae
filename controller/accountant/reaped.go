// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/beat"
	"github.com/attune-hpc/attune/internal/procid"
)

// reaped is the source that needs no rights. What a process took goes to the one
// that waits for it, and this process waits for the command, and for what lost its
// parent: in the end all of it is here, once. What nobody waits for (its parent
// ignores SIGCHLD) is not, and so the sums are a bound where there are several
// processes.
type reaped struct {
	events *births // nil: there are none
	root   int
	refuse error // why there are no events
	beside bool  // what loses its parent is not this process's

	stop    context.CancelFunc
	stopped sync.WaitGroup
	reaper  reaper

	mu   sync.Mutex // guards peak
	peak uint64     // most processes that a look saw
}

const reapedSource = "wait4(2) and /proc/PID/io of what this process reaped"

// reapPause is how often processes are looked for that lost their parent.
const reapPause = 20 * time.Millisecond

func newReaped(beside bool, helper func(pid int) bool) (*reaped, error) {
	r := &reaped{reaper: newReaper(helper), beside: beside}
	if !beside {
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			return nil, fmt.Errorf("become the parent of what loses its own: %w", err)
		}
		r.reaper.strangers = newStrangers()
	}
	r.events, r.refuse = newBirths(beside)
	return r, nil
}

func (r *reaped) fork(start func() error) error { return start() }

func (r *reaped) begin(pid int) {
	r.root = pid
	r.reaper.begin(pid)
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	if r.events != nil {
		r.events.begin(pid)
		r.stopped.Go(func() { r.events.run(ctx) })
	}
	if r.beside {
		return
	}
	r.stopped.Go(func() {
		for ctx.Err() == nil {
			r.reaper.reap()
			beat.Pause(ctx, reapPause)
		}
	})
}

func (r *reaped) ended() { r.reaper.ended() }

// top are the processes from which the others are found: this one, which none of the
// command's can get away from; or the command and what is known to live.
func (r *reaped) top() []int {
	switch {
	case !r.beside:
		return childrenOf(os.Getpid())
	case r.events != nil:
		return r.events.living()
	}
	return []int{r.root}
}

// look walks down from there. Nobody is found only where nobody is: what has lost its
// parent meanwhile is found by walking once more, as is what the kernel left out of a
// list of children because one before it was reaped while the list was read.
func (r *reaped) look() (now, error) {
	n := now{done: r.reaper.done()}
	if r.events != nil {
		n.total, n.peak = r.events.counts()
	}
	dead := make(map[int]bool)
	for again := true; again && len(n.alive) == 0; {
		if !r.beside {
			r.reaper.follow()
		}
		n.alive, n.unwaited, again = r.walk(dead)
	}
	if r.beside && r.events != nil { // it has walked to the living only
		n.unwaited = r.events.unwaited()
	}
	n.moved = r.reaper.done() != n.done
	r.mu.Lock()
	defer r.mu.Unlock()
	r.peak = max(r.peak, n.peak, uint64(len(n.alive)))
	n.peak = r.peak
	return n, nil
}

// walk returns the processes that live, and those but the command that have ended and were not
// waited for, and adds all that it came to and had ended. It says whether there may be others:
// one has ended since the walk before, or was reaped.
func (r *reaped) walk(dead map[int]bool) (alive []living, unwaited []int, again bool) {
	todo := r.top()
	for seen := map[int]bool{}; len(todo) > 0; todo = todo[1:] {
		pid := todo[0]
		stat, err := procid.ReadStat(pid)
		if err != nil || stat.Zombie() {
			again = again || !dead[pid] || !r.beside && unix.Kill(pid, 0) == unix.ESRCH // beside, its end is told late
			dead[pid] = true
		}
		if err != nil || seen[pid] {
			continue
		}
		seen[pid] = true
		if !r.beside && stat.ParentPID == os.Getpid() && r.reaper.strange(stat) {
			if launched(stat) { // it has no children, unless it is the command's and has executed this program
				todo = append(todo, childrenOf(pid)...)
			}
			continue
		}
		if !r.beside || r.events == nil { // else all are known
			todo = append(todo, childrenOf(pid)...)
		}
		if stat.Zombie() {
			if pid != r.root {
				unwaited = append(unwaited, pid)
			}
			continue
		}
		if r.events != nil {
			r.events.saw(stat)
		}
		alive = append(alive, living{
			pid: pid, start: ticks(stat.StartTicks), name: stat.Comm, parent: stat.ParentPID, threads: uint64(stat.Threads), whole: true,
		})
	}
	return alive, unwaited, again
}

func (r *reaped) fill(a *account.Account, start time.Time, usage unix.Rusage, seen taken) (mark uint64, all bool) {
	if !r.beside {
		r.reaper.reap()
	}
	n, _ := r.look()
	sum, ioErr, blind := r.reaper.all(usage)
	for _, p := range n.alive {
		process, took := leftWithChildren(p, start)
		a.Tree = append(a.Tree, process)
		sum.add(took)
	}
	accuracy := r.fillProcesses(a, start, n)
	if accuracy == account.Bound { // nobody may have waited for what looks saw, or have told what it took
		sum.cpu = max(sum.cpu, ownTimes(a.Tree))
		sum.keep(seen)
	}
	fillTaken(a, sum, accuracy, reapedSource)
	if blind != nil {
		a.Missing["io"] = "at least: without processes that lost their parent and ended at once"
	}
	orphans := ""
	if r.beside {
		orphans = ", or that lost their parent"
	}
	if accuracy == account.Bound {
		for _, name := range takenFields {
			a.Missing[name] = "at least: what processes took that nobody waited for is not in it, as those of a parent that ignores SIGCHLD" + orphans + "; with root all of it is known"
		}
	}
	if ioErr != nil {
		a.IO = account.IO{}
		a.Missing["io"] = ioErr.Error()
	}
	// The mark is of whoever had the most; before it executed the command, that was
	// this process itself.
	if mark = uint64(usage.Maxrss) * 1024; mark <= ownMark() {
		return 0, false
	}
	return mark, true
}

// ownMark is the most resident memory that this process had.
func ownMark() uint64 {
	var usage unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &usage) != nil {
		return 1 << 63
	}
	return uint64(usage.Maxrss) * 1024
}

// fillProcesses fills in how many there were, and says how good sums over them are.
func (r *reaped) fillProcesses(a *account.Account, start time.Time, n now) account.Accuracy {
	a.Processes.Left = new(uint64(len(n.alive)))
	a.Note(account.Exact, "/proc", "processes.left")
	if r.events == nil {
		a.Processes.Peak = new(max(n.peak, 1))
		a.Note(account.Bound, "/proc", "processes.peak")
		a.Missing["processes.total"], a.Missing["tree"] = r.refuse.Error(), r.refuse.Error()
		return account.Bound
	}
	total, peak := r.events.settle()
	a.Processes.Total, a.Processes.Peak = new(total), new(peak)
	a.Tree = append(a.Tree, r.events.tree(start)...)
	r.events.left.fill(a)
	sortTree(a.Tree, r.root)
	accuracy := account.Exact
	if lost := r.events.lost(); lost > 0 {
		accuracy, a.Cost.LostEvents = account.Bound, lost
		a.Missing["processes.total"] = "at least: events of processes were lost"
	}
	a.Note(accuracy, "process connector", "processes.total", "processes.peak")
	a.Note(account.Sampled, "/proc of living processes, as of the last look at each", "tree.cpu_seconds", "tree.memory.resident_peak_bytes")
	a.Missing["tree[].cpu_seconds"] = "without root, only sums are known of processes that ended before they were looked at"
	if total > 1 {
		return account.Bound
	}
	return accuracy
}

func (r *reaped) close() error {
	if r.stop != nil {
		r.stop()
		r.stopped.Wait()
	}
	r.reaper.close()
	if !r.beside { // it was set once, and so can be taken back
		_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
	}
	if r.events != nil {
		return r.events.close()
	}
	return nil
}
