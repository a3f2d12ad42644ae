// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/account"
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

	stop    context.CancelFunc
	stopped sync.WaitGroup

	mu    sync.Mutex // guards what follows
	sum   taken      // of what was reaped here, but for the command
	took  taken      // of the command and whatever it waited for: bytes and calls
	ioErr error      // why the former is not known
	// files are the io files of the command and of what lost its parent. A user may
	// read that of an ended process, but not open it.
	files map[int]*os.File
	blind error // why the io of something that lost its parent is not in sum
}

const reapedSource = "wait4(2) and /proc/PID/io of what this process reaped"

// reapPause is how often processes are looked for that lost their parent.
const reapPause = 20 * time.Millisecond

func newReaped() (*reaped, error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("become the parent of what loses its own: %w", err)
	}
	r := &reaped{ioErr: errors.New("the command's end was not seen"), files: make(map[int]*os.File)}
	r.events, r.refuse = newBirths()
	return r, nil
}

func (r *reaped) fork(start func() error) error { return start() }

func (r *reaped) begin(pid int) {
	r.root = pid
	_ = r.openIO(pid) // ended sees that it is not there
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	if r.events != nil {
		r.events.begin(pid)
		r.stopped.Go(func() { r.events.run(ctx) })
	}
	r.stopped.Go(func() {
		for ctx.Err() == nil {
			r.reap()
			select {
			case <-time.After(reapPause):
			case <-ctx.Done():
			}
		}
	})
}

// openIO opens the io file of a process, to be read when it has ended.
func (r *reaped) openIO(pid int) error {
	file, err := os.Open(fmt.Sprintf("/proc/%d/io", pid))
	if err == nil {
		r.files[pid] = file
	}
	return err
}

// endIO reads the io file of a process that has ended.
func (r *reaped) endIO(pid int) (t taken, err error) {
	file := r.files[pid]
	if file == nil {
		if err := r.openIO(pid); err != nil {
			return t, err
		}
		file = r.files[pid]
	}
	defer file.Close()
	delete(r.files, pid)
	data := make([]byte, ioBytes)
	n, err := file.ReadAt(data, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return t, err
	}
	return t, parseIO(data[:n], &t)
}

// ioBytes is more than an io file has.
const ioBytes = 4096

// ended reads the io file of the command, which holds what all took that were
// waited for; a zombie still has one.
func (r *reaped) ended() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.took, r.ioErr = r.endIO(r.root)
}

// reap waits for processes that lost their parent and have ended.
func (r *reaped) reap() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, pid := range childrenOf(os.Getpid()) {
		stat, err := procid.ReadStat(pid)
		switch {
		case err != nil || pid == r.root || ours(stat):
		case stat.Zombie():
			r.take(pid)
		case r.files[pid] == nil:
			_ = r.openIO(pid) // take sees that it is not there
		}
	}
}

// take reaps a process and adds up what it took.
func (r *reaped) take(pid int) {
	t, err := r.endIO(pid)
	r.blind = errors.Join(r.blind, err)
	var usage unix.Rusage
	if got, err := unix.Wait4(pid, nil, unix.WNOHANG, &usage); err != nil || got != pid {
		return // somebody else has waited for it
	}
	addUsage(&t, usage)
	r.sum.add(t)
}

// ours says whether a child is one of package launch's, which is its parent's to
// wait for: they execute /proc/self/exe.
func ours(stat procid.Stat) bool { return stat.Comm == "exe" }

func addUsage(t *taken, usage unix.Rusage) {
	t.user, t.system = time.Duration(usage.Utime.Nano()), time.Duration(usage.Stime.Nano())
	t.cpu = t.user + t.system
	t.voluntary, t.involuntary = uint64(usage.Nvcsw), uint64(usage.Nivcsw)
	t.minorFaults, t.majorFaults = uint64(usage.Minflt), uint64(usage.Majflt)
}

// look walks down from this process: none of the command's can get away from it.
func (r *reaped) look() (now, error) {
	var n now
	if r.events != nil {
		n.total, n.peak = r.events.counts()
	}
	r.mu.Lock()
	n.done, n.known = r.sum, true
	r.mu.Unlock()
	todo := childrenOf(os.Getpid())
	for seen := map[int]bool{}; len(todo) > 0; todo = todo[1:] {
		pid := todo[0]
		stat, err := procid.ReadStat(pid)
		if err != nil || seen[pid] || stat.ParentPID == os.Getpid() && ours(stat) {
			continue
		}
		seen[pid] = true
		todo = append(todo, childrenOf(pid)...)
		if stat.Zombie() {
			continue
		}
		n.alive = append(n.alive, living{
			pid: pid, start: time.Duration(stat.StartTicks) * clockTick, name: stat.Comm, parent: stat.ParentPID, threads: uint64(stat.Threads), whole: true,
		})
	}
	n.peak = max(n.peak, uint64(len(n.alive)))
	return n, nil
}

// childrenOf are the children of a process, of all its threads.
func childrenOf(pid int) (list []int) {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return nil
	}
	for _, task := range tasks {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, task.Name()))
		if err != nil {
			continue
		}
		for word := range strings.FieldsSeq(string(text)) {
			if child, err := strconv.Atoi(word); err == nil {
				list = append(list, child)
			}
		}
	}
	return list
}

func (r *reaped) fill(a *account.Account, start time.Time, usage unix.Rusage) (mark uint64, all bool) {
	r.reap()
	n, _ := r.look()
	r.mu.Lock()
	sum := r.sum
	var own taken
	addUsage(&own, usage)
	sum.add(own)
	sum.add(r.took)
	ioErr := r.ioErr
	blind := r.blind
	r.mu.Unlock()
	for _, p := range n.alive {
		process, took := leftWithChildren(p, start)
		a.Tree = append(a.Tree, process)
		sum.add(took)
	}
	accuracy := r.fillProcesses(a, start, n)
	fillTaken(a, sum, accuracy, reapedSource)
	if blind != nil {
		a.Missing["io"] = "at least: without processes that lost their parent and ended at once"
	}
	if accuracy == account.Bound {
		for _, name := range takenFields {
			a.Missing[name] = "at least: what processes took that nobody waited for is not in it, as those of a parent that ignores SIGCHLD; with root all of it is known"
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
	names := []string{"processes.total", "processes.peak"}
	a.Processes.Left = new(uint64(len(n.alive)))
	a.Accuracy["processes.left"], a.Sources["processes.left"] = account.Exact, "/proc"
	if r.events == nil {
		a.Processes.Peak = new(max(n.peak, 1))
		a.Accuracy["processes.peak"], a.Sources["processes.peak"] = account.Bound, "/proc"
		a.Missing["processes.total"], a.Missing["tree"] = r.refuse.Error(), r.refuse.Error()
		return account.Bound
	}
	total, peak := r.events.settle()
	a.Processes.Total, a.Processes.Peak = new(total), new(peak)
	a.Tree = append(a.Tree, r.events.tree(start)...)
	sortTree(a.Tree, r.root)
	accuracy := account.Exact
	if lost := r.events.lost(); lost > 0 {
		accuracy, a.Cost.LostEvents = account.Bound, lost
		a.Missing["processes.total"] = "at least: events of processes were lost"
	}
	for _, name := range names {
		a.Accuracy[name], a.Sources[name] = accuracy, "process connector"
	}
	a.Missing["tree[].cpu_seconds"] = "without root, only sums are known of processes that have ended"
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
	for _, file := range r.files {
		_ = file.Close() // was read only
	}
	if r.events != nil {
		return r.events.close()
	}
	return nil
}
