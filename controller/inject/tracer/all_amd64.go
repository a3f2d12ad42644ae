// SPDX-License-Identifier: Apache-2.0

package tracer

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
)

const (
	// MaxHeld is how many threads are stopped together. More would take too long.
	MaxHeld = 1000
	// mostHeld and mostHeldEach, for every thread, bound how long threads stand
	// still together: until the caller is done with them, letting them go takes some
	// more.
	mostHeld     = 20 * time.Millisecond
	mostHeldEach = 50 * time.Microsecond
)

// All is all threads of a process, stopped together. It ends with the tracer at the
// latest. Nothing is executed in them.
type All struct {
	tracer  *Tracer
	threads map[int]*Thread     // that are traced
	arrived map[int]unix.Signal // those that have stopped, and the signal to go on with
	told    map[int]bool        // those that were told to stop
	others  map[int]bool        // processes that have memory of their own
	began   time.Time           // when the first was told to stop; zero: not yet
}

func newAll(t *Tracer) *All {
	return &All{tracer: t, threads: make(map[int]*Thread), arrived: make(map[int]unix.Signal), told: make(map[int]bool), others: make(map[int]bool)}
}

// StopAll stops all threads of the process. Errors wrap [ErrBusy], where trying again
// may help, [ErrUnsuited] or [ErrDenied]. The caller calls LetGo in any case.
func (t *Tracer) StopAll() (*All, error) {
	a := newAll(t)
	err := a.allowed()
	if err == nil {
		err = allStop(t.process.PID())
	}
	if err == nil {
		err = a.takeAll()
	}
	return a, err
}

// Stopped says how many threads are held, and since when some are stopped; the zero
// time if none was.
func (a *All) Stopped() (threads int, since time.Time) { return len(a.threads), a.began }

// Each calls look with the registers of each thread, until one is refused or there is
// no time left.
func (a *All) Each(look func(tid int, regs *unix.PtraceRegs) error) error {
	for _, t := range a.threads {
		regs, err := t.Registers()
		if err != nil {
			return fmt.Errorf("%w: %w", ErrBusy, err)
		}
		if err := look(t.ID, &regs); err != nil {
			return err
		}
		if time.Now().After(a.deadline()) {
			return fmt.Errorf("%w: to look at %d threads takes more than %v", ErrBusy, len(a.threads), a.most())
		}
	}
	return nil
}

// Check says why the process is not the one any more whose threads were to be stopped,
// or why its memory is another one's too.
func (a *All) Check() error { return errors.Join(a.alone(), a.tracer.process.Check()) }

// allowed refuses what must not be stopped, before anything is.
func (a *All) allowed() error {
	if err := stoppable(a.tracer.process.PID()); err != nil {
		return err
	}
	return a.alone()
}

// alone refuses a process whose memory another one has too, as a child does
// between vfork(2) and execve(2). It asks of every process once: who is born
// later is asked for again.
func (a *All) alone() error {
	pids, err := procid.List()
	if err != nil {
		return err
	}
	for _, pid := range pids {
		if pid == a.tracer.process.PID() || a.others[pid] {
			continue
		}
		a.others[pid] = true
		switch same, err := procid.ThreadsShareMemory(a.tracer.process.PID(), pid); {
		case errors.Is(err, unix.ENOSYS):
			return fmt.Errorf("%w: the kernel does not tell whether another process has its memory (CONFIG_KCMP)", ErrUnsuited)
		case same:
			return fmt.Errorf("%w: process %d runs in its memory", ErrBusy, pid)
		}
	}
	return nil
}

// takeAll stops all threads. Those that are started meanwhile are found by
// looking again: when nothing new is found twice, whoever could start one
// stands still. A listing in which a thread has ended may lack others, see
// [procid.AllThreads]: it is compared with the one before.
func (a *All) takeAll() error {
	var before []int
	for quiet := 0; quiet < 2; quiet++ {
		tids, err := procid.Threads(a.tracer.process.PID())
		if err != nil {
			return err
		}
		if len(tids) > MaxHeld {
			return fmt.Errorf("%w: it has %d threads, which would all have to be stopped at a time: at most %d are", ErrUnsuited, len(tids), MaxHeld)
		}
		fresh, err := a.take(tids)
		if err != nil {
			return err
		}
		if fresh || !slices.Equal(before, tids) {
			quiet = -1
		}
		before = tids
	}
	return nil
}

// take stops the threads that are not held yet, and says whether there were
// any.
func (a *All) take(tids []int) (fresh bool, err error) {
	tids = slices.DeleteFunc(slices.Clone(tids), func(tid int) bool { return a.threads[tid] != nil })
	if len(tids) == 0 {
		return false, nil // all stand still: no time is to be lost
	}
	seized, err := a.seizeAll(tids)
	if err != nil {
		return false, err
	}
	if a.began.IsZero() {
		a.began = time.Now()
	}
	for _, t := range seized {
		if a.told[t.ID] = true; t.ptrace(unix.PTRACE_INTERRUPT, 0, 0) != nil {
			delete(a.threads, t.ID)
		}
	}
	for _, t := range seized {
		if err := a.arrive(t); err != nil {
			return false, err
		}
	}
	return len(seized) > 0, nil
}

// seizeAll takes hold of threads. An execve(2) of one waits for the end of all others to
// be taken, and to seize one waits for that: see [reaper].
func (a *All) seizeAll(tids []int) (seized []*Thread, err error) {
	reaper := reapMeanwhile(slices.Concat(slices.Collect(maps.Keys(a.threads)), tids))
	defer func() {
		for _, ended := range reaper.stop() {
			delete(a.threads, ended)
			delete(a.arrived, ended)
		}
	}()
	for _, tid := range tids {
		t, err := a.tracer.seize(tid)
		switch {
		case a.tracer.passing(err):
			continue // it has ended
		case errors.Is(err, ErrDenied) && ownTracer(tracerOf(tid)):
			return nil, errOwnTracer
		case err != nil:
			return nil, err
		}
		a.threads[tid] = t
		seized = append(seized, t)
	}
	return seized, nil
}

// most is how long the threads that are held may stand still, and deadline
// when that ends.
func (a *All) most() time.Duration { return mostHeld + time.Duration(len(a.threads))*mostHeldEach }

func (a *All) deadline() time.Time { return a.began.Add(a.most()) }

// arrive waits until a thread has stopped, wherever. One that was about to take
// a signal takes it when it is let go.
func (a *All) arrive(t *Thread) error {
	if a.threads[t.ID] == nil {
		return nil
	}
	t.idle = nil
	s, err := t.wait(a.deadline())
	switch {
	case a.tracer.passing(err):
		delete(a.threads, t.ID)
	case errors.Is(err, errLate):
		return fmt.Errorf("%w: thread %d of %d did not stop within %v", ErrBusy, t.ID, len(a.threads), a.most())
	case err != nil:
		return err
	default:
		a.note(t, s)
	}
	return nil
}

// note remembers that a thread has stopped.
func (a *All) note(t *Thread, s stop) {
	if s.event != 0 {
		s.signal = 0
	}
	a.arrived[t.ID] = s.signal
}

// LetGo lets all threads go on, and each that stops only now at once.
func (a *All) LetGo() {
	for tid, t := range a.threads {
		switch signal, arrived := a.arrived[tid]; {
		case arrived:
			_ = t.letGo(signal) // it may have ended
		case a.told[tid]:
			a.tracer.late[tid] = true
		}
	}
	a.tracer.settle(latePatience)
}
