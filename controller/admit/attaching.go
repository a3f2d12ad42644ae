// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/attune-hpc/attune/controller/inject"
	"github.com/attune-hpc/attune/internal/beat"
	"github.com/attune-hpc/attune/internal/procid"
)

// mostPrograms bounds how many programs of a process are entered one after the other because
// it executes the next one meanwhile: env, nice and their like do once.
const mostPrograms = 8

// attaches says whether a process is being entered because somebody asked for it.
func (e *entering) attaches(pid int) bool {
	_, is := e.asked.Load(pid)
	return is
}

// attach brings a running process, with all that it forks, under control: it
// is followed, and DMLib is injected into it where that is possible. The error
// says why the process cannot even be followed. The caller calls Leave before
// Stop.
func (e *entering) attach(ctx context.Context, pid int) (*Attached, error) {
	e.asked.Store(pid, nil) // before it is young, and late
	defer e.asked.Delete(pid)
	for programs := 1; ; programs++ {
		a, replaced, err := e.attachProgram(ctx, pid, programs == mostPrograms)
		if !replaced {
			return a, err
		}
		e.Log.Debug("it executes another program by now", "pid", pid, "reason", a.NotInjected)
		_ = a.process.Close() // the handle of the program before
	}
}

// attachProgram is attach for the program that a process executes now. It was replaced if
// the process executes another one by the time that it could not be entered: that is not told of
// then, unless it is the last try.
func (e *entering) attachProgram(ctx context.Context, pid int, last bool) (a *Attached, replaced bool, err error) {
	process, err := procid.Open(pid)
	if err != nil {
		return nil, false, err
	}
	handle, err := e.tracker.Follow(ctx, pid)
	if err != nil {
		return nil, false, errors.Join(fmt.Errorf("follow pid %d: %w", pid, err), process.Close())
	}
	a = &Attached{entering: e, process: process, handle: handle}
	t := e.Members.Get(handle)
	if t != nil {
		defer e.bringing.Of(t).alone()()
	}
	a.Injection, a.NotInjected = e.enter(ctx, process, handle)
	if t != nil && a.Injection.Memory != nil {
		e.attached.Of(t).Store(a)
	}
	if a.NotInjected == nil || errors.Is(a.NotInjected, inject.ErrTimeout) || ctx.Err() != nil {
		return a, false, nil // with the end of ctx it is let go
	}
	if !last && otherProgram(ctx, process) {
		return a, true, nil
	}
	e.watchFromOutside(a)
	return a, false, nil
}

// execPatience bounds how long it is waited for an exec that is at work to show what it executes.
const execPatience = time.Second

// otherProgram says whether a process executes another program than when it was opened.
func otherProgram(ctx context.Context, process *procid.Process) bool {
	ctx, cancel := context.WithTimeout(ctx, execPatience)
	defer cancel()
	for before := process.Identity(); ; {
		now, err := procid.Of(process.PID())
		switch {
		case err != nil || !process.Alive():
			return false
		case !now.SameImage(before):
			return true
		case now.Image != 0 || before.Image == 0 || !beat.Pause(ctx, time.Millisecond):
			return false
		}
	}
}
