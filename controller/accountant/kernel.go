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
	"github.com/attune-hpc/attune/internal/procid"
)

// kernel is the source that has the kernel add up what each thread took.
type kernel struct {
	accounts *taskaccount.Accounts
	files    *taskaccount.Files // nil: not wanted, or refused
	limited  bool               // the command is not started where it is not accounted for
	root     int
	began    time.Duration         // when the root did, since boot; 0: not known
	offset   time.Duration         // of the times since boot that are shown here
	mu       sync.Mutex            // guards what follows
	ends     []taskaccount.Process // that were read
	left     leftOut               // of these
	tried    map[int]bool          // pids of those before the command
	err      error                 // of the first read that failed
}

const kernelSource = "kernel tracepoints of fork, exec, exit and the last switch (BPF)"

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
	k = &kernel{accounts: accounts, offset: time.Duration(offset), left: leftOut{wanted: beside}, tried: make(map[int]bool)}
	if files {
		k.files, refused = accounts.NewFiles()
	}
	return k, refused, nil
}

// whyNotKernel says why the account is not the kernel's. A refusal by its verifier is a
// permission error too, and of no privilege.
func whyNotKernel(refused error) string {
	if e, is := errors.AsType[*bpf.UnsupportedError](refused); is && e.Remedy == bpf.PrivilegeRemedy {
		return "better with root: " + refused.Error()
	}
	return refused.Error()
}

// fork starts a command that cannot be accounted for, too, unless it has a limit.
func (k *kernel) fork(start func() error) error {
	tid := unix.Gettid() // this thread's, for the caller is locked to it
	if err := k.accounts.StartFrom(tid); err != nil {
		if k.limited {
			return err
		}
		k.err = err // nobody else has k yet
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
	for _, p := range k.ends {
		k.try(p)
	}
}

// try takes note of a process that ended before the command began: its program was looked for in
// several places, and not all could be executed. The parent does not tell: that of what the
// command clones with CLONE_PARENT is this process.
func (k *kernel) try(p taskaccount.Process) (tried bool) {
	if tried = p.End != 0 && p.End <= k.began; tried {
		k.tried[p.PID] = true
	}
	return tried
}

func (k *kernel) ended() {}

// drain takes what has ended out of the ring.
func (k *kernel) drain() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.accounts.Read(func(p taskaccount.Process) {
		k.ends = append(k.ends, p)
		k.try(p)
	}); err != nil && k.err == nil {
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
	totals, err := k.accounts.Totals()
	if err != nil {
		return now{}, err
	}
	list, err := k.accounts.Living()
	if err != nil {
		return now{}, err
	}
	// Between the totals: one that ends later is in neither, and is still asked what it took; one that
	// has ended in between makes them differ.
	firstDone := firstsDone(list)
	after, err := k.accounts.Totals()
	if err != nil {
		return now{}, err
	}
	n := now{total: totals.Processes - k.triedOf(list), peak: totals.Peak, done: takenOf(totals.Taken), moved: after.Taken != totals.Taken}
	for _, p := range list {
		l := living{
			pid: p.PID, start: p.Start + k.offset, done: takenOf(p.Taken), firstDone: firstDone[p.PID], name: p.Name, parent: p.Parent, threads: p.Threads,
		}
		if p.End == 0 {
			n.alive = append(n.alive, l)
		} else {
			n.ending = append(n.ending, l)
		}
	}
	return n, nil
}

// triedOf returns how many were tried, and are in the kernel's number of processes. list has
// those that the kernel had not done with a moment ago; the others are in the ring.
func (k *kernel) triedOf(list []taskaccount.Process) uint64 {
	k.drain()
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, p := range list {
		k.try(p)
	}
	return uint64(len(k.tried))
}

// firstsDone are the processes of which the first thread has ended before the others.
func firstsDone(list []taskaccount.Process) map[int]bool {
	done := make(map[int]bool)
	for _, p := range list {
		if p.Threads == 1 { // it ends with its process
			continue
		}
		if stat, err := procid.ReadThreadStat(p.PID, p.PID); err == nil && stat.Dead() {
			done[p.PID] = true
		}
	}
	return done
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

func (k *kernel) close() error {
	var err error
	if k.files != nil {
		err = k.files.Close()
	}
	return errors.Join(err, k.accounts.Close())
}
