// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/gate"
	"github.com/attune-hpc/attune/controller/inject"
	"github.com/attune-hpc/attune/controller/member"
	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/controller/track"
	"github.com/attune-hpc/attune/internal/peercred"
	"github.com/attune-hpc/attune/internal/proc"
	"github.com/attune-hpc/attune/internal/procid"
)

// Attached is a process that was running before the controller took control
// of it.
type Attached struct {
	entering *entering
	process  *procid.Process
	handle   uint64
	// Injection says how DMLib was brought in; zero if it was not. Slots of
	// objects that were loaded since are not in it.
	Injection inject.Result
	// NotInjected is why it was not; nil if it was. The process is followed
	// then from outside.
	NotInjected error

	late  bool       // it came by itself, and whoever let it in leaves it
	mu    sync.Mutex // guards later; held while it grows
	later []shm.Slot // of objects that were loaded since
}

// Refused says that there are no rights to enter the process, or that another
// controller has it.
func (a *Attached) Refused() bool {
	return errors.Is(a.NotInjected, inject.ErrDenied) || errors.Is(a.NotInjected, inject.ErrHeld)
}

// Later says that the process is entered when it may be, if something needs that then.
func (a *Attached) Later() bool {
	return a.entering.LateLibrary && errors.Is(a.NotInjected, inject.ErrForNow)
}

// slots returns all that lead to hooks.
func (a *Attached) slots() []shm.Slot {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Concat(a.Injection.Slots, a.later)
}

// entering brings DMLib into processes that run.
type entering struct {
	ways
	foreign  func(pid int) error
	arrivals *arrivals
	door     *door
	tracker  *track.Tracker
	attached member.Keep[atomic.Pointer[Attached]]
	bringing member.Keep[bringing]
	asked    sync.Map // pid of each process that attach is at work on
}

// bringing is the way of DMLib into a process.
type bringing struct {
	once  chan struct{} // holds a token: whoever has it tries
	done  bool          // there is nothing to try any more; guarded by the token
	asked atomic.Int32  // calls of library.need that are not answered yet; one goroutine answers them
}

func newBringing() *bringing {
	b := &bringing{once: make(chan struct{}, 1)}
	b.once <- struct{}{}
	return b
}

// alone has nobody else try until the function that it returns is called.
func (b *bringing) alone() (done func()) {
	<-b.once
	return func() { b.once <- struct{}{} }
}

// enter injects DMLib, unless the process has come to the gate by itself.
func (e *entering) enter(ctx context.Context, process *procid.Process, handle uint64) (inject.Result, error) {
	if e.Library == "" {
		return inject.Result{}, fmt.Errorf("%w: DMLib is not part of this build", inject.ErrUnsuited)
	}
	image, err := proc.Hold(process.Identity())
	switch {
	case errors.Is(err, proc.ErrPermission):
		return inject.Result{}, fmt.Errorf("%w: %w", inject.ErrDenied, err)
	case err != nil:
		return inject.Result{}, err
	}
	defer image.Close()
	if why := e.foreign(process.PID()); why != nil { // the image is what was asked about, or is gone
		return inject.Result{}, why
	}
	t := e.Members.Get(handle)
	if t != nil && t.Memory() != nil || e.arrivals.waiting(process.PID()) {
		return inject.Result{}, nil
	}
	result, err := inject.Inject(ctx, image, inject.Options{
		Library: e.Library, Socket: e.GatePath, Cache: e.Cache,
		Geometry: shm.Fit(limitsOf(process.PID())),
	})
	if err != nil {
		return result, err
	}
	var pidfd *os.File
	err = process.WithFD(func(fd int) error {
		duplicate, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		pidfd = os.NewFile(uintptr(duplicate), "pidfd")
		return err
	})
	if err != nil {
		return result, errors.Join(err, result.Memory.Close())
	}
	e.door.atGate(gate.Attachment{
		Peer: peercred.Peer{PID: process.PID(), Pidfd: pidfd}, Memory: result.Memory,
		Hello: gate.Hello{Flags: gate.Injected},
	})
	return result, nil
}

// watchFromOutside takes in a process that could not be entered.
func (e *entering) watchFromOutside(a *Attached) {
	t, reason := e.Members.Get(a.handle), a.NotInjected
	if t == nil {
		return // it has ended
	}
	if !e.outside(t, a.Later(), reason.Error()) {
		t.SetMechanism(member.MechanismDMLib, false, reason.Error())
		e.Outbox.TellNow(t)
	}
}

// leave lets go of the process of a member that has gone.
func (e *entering) leave(t *member.Member) {
	if a := e.attached.Of(t).Load(); a != nil && a.late {
		_ = a.process.Close() // it is closed already by whoever left it
	}
}

// extendTimeout bounds how long new objects wait for the process to come to a
// hook.
const extendTimeout = 5 * time.Second

// extend leads the calls of objects that the process has loaded since to the
// hooks.
func (a *Attached) extend(t *member.Member) {
	memory := t.Memory()
	images, err := t.Images()
	if memory == nil || err != nil {
		return // it has ended, or is not taken in yet: the next object comes too
	}
	ctx, cancel := context.WithTimeout(a.entering.Context, extendTimeout)
	defer cancel()
	a.mu.Lock()
	defer a.mu.Unlock()
	led, err := inject.Extend(ctx, t, memory, images, slices.Concat(a.Injection.Slots, a.later))
	a.later = append(a.later, led...)
	a.entering.Log.Debug("objects loaded later", "pid", t.PID(), "slots", len(led), "error", err)
}

// PID returns the process id, which is only safe to use while Alive.
func (a *Attached) PID() int { return a.process.PID() }

// Alive says whether any thread of the process still runs.
func (a *Attached) Alive() bool { return a.process.Alive() }

// Wait returns when the process has ended, or with the error of ctx.
func (a *Attached) Wait(ctx context.Context) error { return a.process.Wait(ctx) }

// Leave gives the process its GOT back, as far as it comes to a hook before
// ctx ends: what stays leads through a hook that does nothing. It returns how
// many slots stayed. The Attached must not be used afterwards.
func (a *Attached) Leave(ctx context.Context) (stayed int) {
	defer a.process.Close()
	t := a.entering.Members.Get(a.handle)
	if t == nil || !a.process.Alive() {
		return 0
	}
	memory := t.Memory()
	if memory == nil {
		return 0
	}
	return len(inject.GiveBack(ctx, memory, a.slots()))
}

// limitsOf reads what a running process has to put a memory file into. What cannot
// be read is no limit.
func limitsOf(pid int) (l shm.Limits) {
	tids, _ := procid.Threads(pid)
	l.Threads = len(tids)
	var addresses unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_AS, nil, &addresses); err == nil && addresses.Cur != unix.RLIM_INFINITY {
		l.Addresses = max(addresses.Cur, 1)
	}
	status, _ := procid.ReadStatus(pid)
	l.Locked = status.Locked > 0
	return l
}
