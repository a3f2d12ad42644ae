// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/attach"
	"github.com/attune-hpc/attune/controller/inject"
	"github.com/attune-hpc/attune/controller/member"
	"github.com/attune-hpc/attune/internal/peercred"
	"github.com/attune-hpc/attune/internal/procid"
)

// Attached is a process that was running before the controller took control
// of it.
type Attached struct {
	controller *Controller
	process    *procid.Process
	handle     uint64
	// Injection says how DMLib was brought in; zero if it was not. Slots of
	// objects that were loaded since are not in it.
	Injection inject.Result
	// NotInjected is why it was not; nil if it was. The process is followed
	// then from outside.
	NotInjected error

	mu    sync.Mutex    // guards later; held while it grows
	later []inject.Slot // of objects that were loaded since
}

// slots returns all that lead to hooks.
func (a *Attached) slots() []inject.Slot {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Concat(a.Injection.Slots, a.later)
}

// Attach brings a running process, with all that it forks, under control: it
// is followed, and DMLib is injected into it where that is possible. The error
// says why the process cannot even be followed. The caller calls Leave before
// Stop.
func (c *Controller) Attach(ctx context.Context, pid int) (*Attached, error) {
	process, err := procid.Open(pid)
	if err != nil {
		return nil, err
	}
	handle, err := c.tracker.Follow(ctx, pid)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("follow pid %d: %w", pid, err), process.Close())
	}
	a := &Attached{controller: c, process: process, handle: handle}
	a.Injection, a.NotInjected = c.enter(ctx, process, handle)
	if t := c.members.Get(handle); t != nil && a.Injection.Memory != nil {
		c.attached.Of(t).Store(a)
	}
	if a.NotInjected != nil && !errors.Is(a.NotInjected, inject.ErrTimeout) {
		c.watchFromOutside(handle, a.NotInjected)
	}
	return a, nil
}

// enter injects DMLib, unless the process has come to the gate by itself.
func (c *Controller) enter(ctx context.Context, process *procid.Process, handle uint64) (inject.Result, error) {
	if c.config.LibraryPath == "" {
		return inject.Result{}, fmt.Errorf("%w: DMLib is not part of this build", inject.ErrUnsuited)
	}
	permitted := func() error { return c.foreign(process.PID()) }
	if why := permitted(); why != nil {
		return inject.Result{}, why
	}
	t := c.members.Get(handle)
	if t != nil && t.Memory() != nil || c.arrivals.waiting(process.PID()) {
		return inject.Result{}, nil
	}
	result, err := inject.Inject(ctx, process, inject.Options{
		Library: c.config.LibraryPath, Socket: c.config.GatePath, Cache: c.cache,
		Permitted: permitted,
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
	app := result.Memory.App()
	c.atGate(attach.Attachment{
		Peer: peercred.Peer{PID: process.PID(), Pidfd: pidfd}, Memory: result.Memory,
		Hello: attach.Hello{Flags: attach.Injected, PID: app.PID, TID: result.Thread},
	})
	return result, nil
}

// watchFromOutside takes in a process that will not come to the gate.
func (c *Controller) watchFromOutside(handle uint64, reason error) {
	t := c.members.Get(handle)
	if t == nil {
		return // it has ended
	}
	first := t.AdmitOutside(false)
	t.SetMechanism(mechanismDMLib, false, reason.Error())
	if first {
		c.openWays(t)
	}
	c.changed(t)
	if first {
		c.place(c.ctx, t, false)
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
	ctx, cancel := context.WithTimeout(a.controller.ctx, extendTimeout)
	defer cancel()
	a.mu.Lock()
	defer a.mu.Unlock()
	led, err := inject.Extend(ctx, t.PID(), memory, images, slices.Concat(a.Injection.Slots, a.later))
	a.later = append(a.later, led...)
	a.controller.log.Debug("objects loaded later", "pid", t.PID(), "slots", len(led), "error", err)
}

// Wait returns when the process has ended, or with the error of ctx.
func (a *Attached) Wait(ctx context.Context) error { return a.process.Wait(ctx) }

// Leave gives the process its GOT back, as far as it comes to a hook before
// ctx ends: what stays leads through a hook that does nothing. It returns how
// many slots stayed. The Attached must not be used afterwards.
func (a *Attached) Leave(ctx context.Context) (stayed int) {
	defer a.process.Close()
	t := a.controller.members.Get(a.handle)
	if t == nil || !a.process.Alive() {
		return 0
	}
	memory := t.Memory()
	if memory == nil {
		return 0
	}
	return len(inject.GiveBack(ctx, memory, a.slots()))
}
