// SPDX-License-Identifier: Apache-2.0

package tracer

import (
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Operations of futex(2) that x/sys/unix does not have. They are not those on
// words of one process (FUTEX_PRIVATE_FLAG), which another one cannot own.
const (
	futexUnlockPI      = 7
	futexWaitRequeuePI = 11
	futexCmpRequeuePI  = 12
)

const (
	// lentPriority is the least of the real-time ones: above every ordinary
	// thread, below every one that has been given such a priority by somebody.
	lentPriority = 1
	// waitingPriority is that of the OS thread that waits for the borrower. It is
	// the one that ends the loan: among equals, a borrower that computes would
	// keep it from the processor that they share.
	waitingPriority = lentPriority + 1
	// turn is the Unix socket (in the network namespace, not a file) that whoever
	// lends has bound. The kernel takes it away when its holder is gone.
	turn = "@attune-lends-priority"
	// lentMost bounds one loan: what has not come to its end by then computes.
	lentMost = 20 * time.Millisecond
)

// lender lets a thread of another process run at a real-time priority while
// somebody waits for it: on a busy machine a thread that is borrowed would
// otherwise be given a processor tens of milliseconds later, several times.
//
// The priority is not set but inherited. A futex with priority inheritance
// belongs to whatever thread its word names, and who waits for it lends that one
// its priority; nothing of the thread is changed, its children do not inherit
// it, and the kernel ends the loan when the waiter is gone, however it ended. The
// waiter is an OS thread of ours, the giver. It is moved from one futex to the
// other by the borrower (FUTEX_CMP_REQUEUE_PI), so that it need not run itself;
// nor need it to take the priority back, which goes when the giver has it no more.
//
// A giver that is killed must run once more, and is no more than the equal of a
// borrower that computes. There is a processor for it, since nothing is lent where
// there is but one, and there is one loan at a time.
//
// Where the user may not have such a priority nothing is lent. All methods are
// for the goroutine that made it, in its OS thread; nil lends nothing.
type lender struct {
	over   uint32 // where the giver waits, until it is not 0
	owner  uint32 // belongs to the thread that is lent to
	giver  int    // an OS thread
	ended  chan struct{}
	turn   int            // descriptor of the socket, while something is lent
	lentAt time.Time      // zero: nothing is lent
	usual  unix.SchedAttr // of both OS threads
}

// newLender starts the giver. nil where nothing can be lent.
func newLender() *lender {
	usual, err := unix.SchedGetAttr(0, 0)
	if err != nil || usual.Policy != unix.SCHED_NORMAL || processors() < 2 {
		return nil
	}
	// Once set, the flag is not for everybody to take off. The threads end anyway.
	usual.Flags |= unix.SCHED_FLAG_RESET_ON_FORK
	l := &lender{ended: make(chan struct{}), usual: *usual}
	giver := make(chan int)
	go func() {
		defer close(l.ended)
		onOwnThread(func() {
			if realTime(0, waitingPriority) != nil || unix.SchedSetAttr(0, &l.usual, 0) != nil {
				giver <- 0
				return
			}
			giver <- unix.Gettid()
			l.give()
		})
	}()
	if l.giver = <-giver; l.giver == 0 {
		return nil
	}
	return l
}

// processors is how many this OS thread may run on; 0 if that is not known.
func processors() int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return 0
	}
	return set.Count()
}

// realTime gives an OS thread of ours, 0 for this one, a real-time priority.
func realTime(tid int, priority uint32) error {
	return unix.SchedSetAttr(tid, &unix.SchedAttr{
		Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: priority, Flags: unix.SCHED_FLAG_RESET_ON_FORK,
	}, 0)
}

// takeTurn says whether nobody else lends. endTurn follows.
func (l *lender) takeTurn() bool {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false
	}
	if unix.Bind(fd, &unix.SockaddrUnix{Name: turn}) != nil {
		_ = unix.Close(fd)
		return false
	}
	l.turn = fd
	return true
}

func (l *lender) endTurn() { _ = unix.Close(l.turn) }

// give waits, and lends whenever it was moved to the other futex, until a signal
// comes.
func (l *lender) give() {
	for atomic.LoadUint32(&l.over) == 0 {
		_, _, errno := unix.Syscall6(unix.SYS_FUTEX, address(&l.over), futexWaitRequeuePI, 0, 0, address(&l.owner), 0)
		switch errno {
		case 0: // the thread that it belonged to has ended
			l.futex(&l.owner, futexUnlockPI, 0, 0, 0)
		case unix.EAGAIN, unix.EINTR:
		default:
			return
		}
	}
}

// lend begins a loan to a thread, and has this OS thread wait for it at a higher
// priority. It is for one thread at a time.
func (l *lender) lend(tid int) {
	if l == nil || !l.takeTurn() {
		return
	}
	l.lentAt = time.Now()
	if realTime(0, waitingPriority) != nil || realTime(l.giver, lentPriority) != nil {
		l.end()
		return
	}
	atomic.StoreUint32(&l.owner, uint32(tid))
	l.futex(&l.over, futexCmpRequeuePI, 1, 1, address(&l.owner)) // the giver may not be back yet
}

// expire ends a loan that lasts for too long.
func (l *lender) expire() {
	if l != nil && !l.lentAt.IsZero() && time.Since(l.lentAt) > lentMost {
		l.end()
	}
}

// end ends a loan, if there is one.
func (l *lender) end() {
	if l == nil || l.lentAt.IsZero() {
		return
	}
	l.lentAt = time.Time{}
	_ = unix.SchedSetAttr(l.giver, &l.usual, 0) // less is always allowed
	l.wake()
	_ = unix.SchedSetAttr(0, &l.usual, 0)
	l.endTurn()
}

// wake ends the giver's system call. The signal is the one by which the Go
// runtime interrupts its own threads, at any time.
func (l *lender) wake() { _ = unix.Tgkill(os.Getpid(), l.giver, unix.SIGURG) }

// close ends the giver.
func (l *lender) close() {
	if l == nil {
		return
	}
	l.end()
	atomic.StoreUint32(&l.over, 1)
	l.wake()
	<-l.ended
}

// futex is futex(2) that does not block.
func (l *lender) futex(word *uint32, operation, value, other, second uintptr) {
	_, _, _ = unix.RawSyscall6(unix.SYS_FUTEX, address(word), operation, value, other, second, 0)
}

func address(word *uint32) uintptr { return uintptr(unsafe.Pointer(word)) }
