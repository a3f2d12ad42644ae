// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/inject/tracer"
	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/dmlib"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/proc"
	"github.com/attune-hpc/attune/internal/procid"
)

// Defaults of Options.
const (
	defaultPatience = 2 * time.Second
	defaultTimeout  = 5 * time.Second
)

// Options says what is brought in. Library is required.
type Options struct {
	// Library is the absolute path of DMLib, as this process sees it. A process
	// that sees another file there, or belongs to another user, is given the
	// bytes.
	Library string
	// Socket is the path of the start gate, for children that the process forks
	// later; empty: they stay without DMLib. So do those that cannot reach it.
	Socket string
	// Geometry of the memory shared with the process; zero: the default. It is
	// made smaller where the process has no room for it.
	Geometry shm.Geometry
	// patience bounds the wait for the C library of a program that is being loaded, and
	// the search for a safe place. 0: 2 seconds.
	patience time.Duration
	// timeout bounds the call itself. 0: 5 seconds.
	timeout time.Duration
	// Cache keeps ELF files open; may be nil.
	Cache *objfile.Cache

	// died ends the tracer's thread somewhere in the middle of the call, and among
	// leaves threads out; for tests.
	died  func(where string) bool
	among func(tid int) bool
}

func (o Options) withDefaults() Options {
	o.patience = cmp.Or(o.patience, defaultPatience)
	o.timeout = cmp.Or(o.timeout, defaultTimeout)
	return o
}

// Result tells what an injection did and cost.
type Result struct {
	tracer.Cost
	// Helper is the thread that was started to load DMLib, and has ended; 0:
	// Thread did that itself.
	Helper int
	// Loaded says that DMLib was not in the process before.
	Loaded bool
	// Slots lead to hooks now.
	Slots []shm.Slot
	// Memory is shared with DMLib, which is ready. It belongs to the caller; to
	// close it lets go of the process.
	Memory *shm.Memory
}

// Inject brings DMLib into a process and leads the process' calls through its
// hooks. Where the library is there already, because another controller left
// it or it was preloaded, it is told to serve this one. The process is as it
// was if an error is returned, but for a library that was loaded and is inert,
// and for [ErrTimeout]. Errors wrap those of this package or [procid.ErrGone].
//
// Of several controllers that enter a process at a time one succeeds, and the
// others get [ErrHeld].
func Inject(ctx context.Context, process *proc.Handle, o Options) (Result, error) {
	o = o.withDefaults()
	status, err := check(process.PID())
	if err != nil {
		return Result{}, err
	}
	release, err := claim(process.PID())
	if err != nil {
		return Result{}, err
	}
	defer release()
	for {
		result, err := injectOnce(ctx, process, status, o)
		smaller, ok := o.Geometry.Smaller()
		if !errors.Is(err, unix.ENOMEM) || !ok {
			return result, err
		}
		o.Geometry = smaller
	}
}

// check refuses what must not or cannot be injected into.
func check(pid int) (procid.Status, error) {
	s, err := tracer.Check(pid)
	if err != nil {
		return s, err
	}
	if why := objfile.InspectExecuted(pid).PreloadRefusal(); why != "" {
		return s, fmt.Errorf("%w: %s", ErrUnsuited, why)
	}
	return s, checkFilters(pid)
}

func injectOnce(ctx context.Context, process *proc.Handle, s procid.Status, o Options) (Result, error) {
	i, err := newInjection(ctx, process, s, o)
	if err != nil && (ending(process) || errors.Is(err, unix.ESRCH)) {
		return Result{}, fmt.Errorf("pid %d: %w", process.PID(), procid.ErrGone)
	}
	if err != nil {
		return Result{}, err
	}
	return i.run(ctx)
}

// injection brings DMLib into a process by a thread that is borrowed.
type injection struct {
	options Options
	caller  caller
	ground  *ground // where a thread may be borrowed
	request *request
	job     *job
	handout handout
	talk    *talk // with what was called, once it was
}

// newInjection looks for everything that can be known before anything is stopped.
func newInjection(ctx context.Context, process *proc.Handle, s procid.Status, o Options) (*injection, error) {
	pid := process.PID()
	images, err := loadedImages(ctx, pid, o.Cache, o.patience)
	if err != nil {
		return nil, err
	}
	i := &injection{options: o, job: &job{path: o.Library}, request: &request{geometry: o.Geometry, socket: o.Socket}}
	i.handout = handout{library: o.Library, geometry: o.Geometry, user: int(s.Users.Files)}
	if i.job.image, err = dmlib.Entry(); err != nil {
		return nil, err
	}
	if i.handout.owner, err = shm.ThisProcess(); err != nil {
		return nil, err
	}
	if i.request.orphan, err = orphaned(process); err != nil {
		return nil, err
	}
	own, apart, err := ofProgram(process, images)
	if err != nil {
		return nil, err
	}
	if i.job.calls, err = findCalls(pid, own); err != nil {
		return nil, err
	}
	if i.ground, err = newGround(process, own, apart); err != nil {
		return nil, err
	}
	library, err := findLibrary(process, images, s, o.Library)
	if err != nil {
		return nil, err
	}
	i.job.attach, i.job.bytes = library.attach, library.fromMemory
	definers := findDefiners(pid, own, library.hooks)
	i.request.reals = definers.reals()
	i.request.slots = findSlots(own, library.hooks, definers)
	i.job.request = i.request.encode()
	i.caller = caller{process: process, timeout: o.timeout, borrower: tracer.NewBorrower(process, s, tracer.BorrowerOptions{
		Gadget: i.ground.gadget, Needs: slices.Concat(callNeeds, attachNeeds), Died: o.died,
	})}
	return i, nil
}

// run finds a thread at a safe place, makes the call there, and sees the process through
// the rest.
func (i *injection) run(ctx context.Context) (result Result, err error) {
	process := i.caller.process
	search := tracer.NewSearch(i.caller.borrower, tracer.SearchOptions{
		Suits: i.ground.safe, Patience: i.options.patience, Among: i.options.among,
	})
	err = tracer.Run(process, func(t *tracer.Tracer) error {
		if err := search.Find(ctx, t, &result.Cost, i.enter); err != nil {
			return err
		}
		return i.finish(ctx, &result)
	})
	return result, interrupted(process, err)
}

// enter makes a thread, which stands, load DMLib, or start a thread that will.
func (i *injection) enter(t *tracer.Thread) (done bool, err error) {
	c, err := i.caller.open(t, i.job)
	if c == nil {
		return false, errors.Join(err, t.LetGo())
	}
	i.talk = &talk{call: c, handout: i.handout}
	defer func() {
		if err != nil { // also where the thread comes to it later: it finds the memory detached
			err = errors.Join(err, i.talk.drop())
		}
	}()
	if err == nil {
		err = c.make(func() { i.talk.look(t.ID) })
	}
	if err == nil && !c.apart() {
		err = i.talk.collect()
	}
	return c.end(err)
}

// finish waits for the thread that does the work, if there is one, and reads
// what came of it.
func (i *injection) finish(ctx context.Context, result *Result) error {
	k := i.talk
	if k.apart() {
		if err := k.attend(ctx); err != nil {
			return errors.Join(err, k.drop())
		}
		result.Helper = k.helper
	}
	defer k.dismiss()
	if err := k.problem(); err != nil {
		return errors.Join(err, k.drop())
	}
	result.Loaded = i.job.attach == 0
	result.Slots = i.request.slotsOf(k.reply, k.shared.App().Base)
	result.Memory = k.shared
	return nil
}
