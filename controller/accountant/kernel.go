// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"cmp"
	"errors"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/bpf"
	"github.com/attune-hpc/attune/controller/bpf/taskaccount"
	"github.com/attune-hpc/attune/internal/account"
)

// kernel is the source that has the kernel add up what each thread took.
type kernel struct {
	accounts *taskaccount.Accounts
	files    *taskaccount.Files // nil: not wanted, or refused
	root     int
	began    time.Duration         // when the root did, since boot; 0: not known
	offset   time.Duration         // of the times since boot that are shown here
	mu       sync.Mutex            // guards what follows
	ends     []taskaccount.Process // that were read
	left     leftOut               // of these
	err      error                 // of the first read that failed
}

const kernelSource = "kernel tracepoints of fork, exec, exit and the last switch (BPF)"

// settleTime is how long the kernel may take from a process's end to the last
// switch of its threads. It takes microseconds; a machine may be very busy.
const settleTime = 2 * time.Second

// newKernel opens the kernel's account, with files if that is asked for and can be had:
// refused says why it cannot. beside is that of [Options].
func newKernel(files, beside bool) (k *kernel, refused, err error) {
	offset, err := bpf.OwnBootOffset()
	if err != nil {
		return nil, nil, err
	}
	accounts, err := taskaccount.New()
	if err != nil {
		return nil, nil, err
	}
	k = &kernel{accounts: accounts, offset: time.Duration(offset), left: leftOut{wanted: beside}}
	if files {
		k.files, refused = accounts.NewFiles()
	}
	return k, refused, nil
}

func (k *kernel) fork(start func() error) error {
	tid := unix.Gettid() // this thread's, for the caller is locked to it
	if err := k.accounts.StartFrom(tid); err != nil {
		return err
	}
	err := start()
	_ = k.accounts.StopFrom(tid) // what was started runs, and is no failure
	return err
}

// begin looks for when the command began, while it is in one of the lists for sure.
func (k *kernel) begin(pid int) {
	k.root = pid
	alive, err := k.accounts.Living()
	k.drain()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.err = cmp.Or(k.err, err)
	for _, p := range slices.Concat(alive, k.ends) {
		if p.PID == pid {
			k.began = p.Start
		}
	}
}

func (k *kernel) ended() {}

// drain takes what has ended out of the ring.
func (k *kernel) drain() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.accounts.Read(func(p taskaccount.Process) { k.ends = append(k.ends, p) }); err != nil && k.err == nil {
		k.err = err
	}
	k.ends = leaveOut(&k.left, k.ends, func(a, b taskaccount.Process) int {
		// Those that were tried first have to be known.
		if own := unix.Getpid(); (a.Parent == own) != (b.Parent == own) {
			return map[bool]int{true: -1, false: 1}[a.Parent == own]
		}
		return cmp.Compare(b.Taken.Runtime, a.Taken.Runtime)
	}, func(p taskaccount.Process) uint64 { return p.ResidentPages * uint64(os.Getpagesize()) })
	if k.files != nil {
		_ = k.files.Read() // its error comes again at the end
	}
}

func (k *kernel) look() (now, error) {
	k.drain()
	totals, err := k.accounts.Totals()
	if err != nil {
		return now{}, err
	}
	list, err := k.accounts.Living()
	if err != nil {
		return now{}, err
	}
	n := now{total: totals.Processes, peak: totals.Peak, done: takenOf(totals.Taken), known: true}
	for _, p := range list {
		if p.End == 0 {
			n.alive = append(n.alive, living{
				pid: p.PID, start: p.Start + k.offset, done: takenOf(p.Taken), name: p.Name, parent: p.Parent, threads: p.Threads,
			})
		}
	}
	return n, nil
}

func takenOf(t bpf.Taken) taken {
	user, system := t.Shares()
	return taken{
		cpu: time.Duration(t.Runtime), user: user, system: system, wait: time.Duration(t.Wait),
		read: t.ReadChars, written: t.WrittenChars, readCalls: t.ReadCalls, writtenCalls: t.WrittenCalls,
		storageRead: t.ReadBytes, storageWritten: t.Storage(),
		voluntary: t.Voluntary, involuntary: t.Involuntary, minorFaults: t.MinorFaults, majorFaults: t.MajorFaults,
	}
}

func (k *kernel) fill(a *account.Account, start time.Time, _ unix.Rusage) (mark uint64, all bool) {
	totals, err := k.settle()
	n, lookErr := k.look()
	k.mu.Lock()
	defer k.mu.Unlock()
	if err = errors.Join(err, lookErr, k.err); err != nil {
		for _, name := range takenFields {
			a.Missing[name] = err.Error()
		}
		return 0, false
	}
	sum, tried := takenOf(totals.Taken), uint64(0)
	for _, p := range k.ends {
		if p.End <= k.began {
			// The program was looked for in several places, and not all could be executed.
			// The parent does not tell: that of what the command clones with CLONE_PARENT is this process.
			sum.subtract(takenOf(p.Taken))
			tried++
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
		Total: new(totals.Processes - tried), Peak: new(totals.Peak), Left: new(uint64(len(n.alive))),
	}
	fillKernelAccuracy(a, sum, totals)
	if k.files != nil {
		fillFiles(a, k.files, len(n.alive) > 0)
	}
	k.left.fill(a)
	mark, all = residentMark(a)
	return max(mark, k.left.mark), all && !k.left.unmarked
}

// fillKernelAccuracy sets the account's sums, and says how good they and the numbers of
// processes are.
func fillKernelAccuracy(a *account.Account, sum taken, totals taskaccount.Totals) {
	accuracy, count := account.Exact, account.Exact
	if *a.Processes.Left > 0 {
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

func (k *kernel) close() error {
	var err error
	if k.files != nil {
		err = k.files.Close()
	}
	return errors.Join(err, k.accounts.Close())
}
