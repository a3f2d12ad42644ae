// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"context"
	"errors"

	"github.com/attune-hpc/attune/controller/inject/breakpoint"
	"github.com/attune-hpc/attune/controller/inject/tracer"
	"github.com/attune-hpc/attune/internal/debugregs"
)

// debugRegistersDead says that there are none that work; a variable for tests.
var debugRegistersDead = debugregs.Dead

// ambush waits for threads that come to an address by themselves, and has code executed
// there.
type ambush struct {
	*execution
	watch *tracer.Watch
	here  breakpoint.Breakpoint   // the one that is waited at
	made  []breakpoint.Breakpoint // all that are to be closed
	cost  tracer.Cost
}

// waitAt makes the breakpoint that is waited at.
func (a *ambush) waitAt(addresses ...uint64) error {
	b, err := breakpoint.New(a.caller.process, breakpoint.Options{
		Addresses: addresses, AtExit: a.options.AtExit, Probed: debugRegistersDead(),
	})
	if err == nil {
		a.here, a.made = b, append(a.made, b)
	}
	return err
}

// await calls arrived with each thread that the breakpoint stops, until that is done.
func (a *ambush) await(ctx context.Context, at []uint64, arrived func(*tracer.Thread) (done bool, err error)) (tracer.Cost, error) {
	process := a.caller.process
	defer func() {
		for _, b := range a.made {
			_ = b.Close() // nobody is stopped any more
		}
	}()
	err := tracer.TrapIsFree(process.PID())
	if err == nil {
		err = a.waitAt(at...)
	}
	if err == nil {
		err = tracer.Run(process, func(t *tracer.Tracer) error {
			a.watch = t.Watch(a.caller.borrower, a.options.Thread, a.here)
			defer func() {
				a.here.Disable()
				a.cost.Disturbed += a.watch.End()
			}()
			return a.watch.Wait(ctx, a.options.Patience, arrived)
		})
	}
	return a.cost, interrupted(process, err)
}

// executionAt has the code executed by the thread that comes to a function first, at its
// entry or its exit.
type executionAt struct {
	ambush
	depth uint64 // the stack pointer that is expected at the breakpoint; 0: any
}

func (e *execution) runAt(ctx context.Context) (tracer.Cost, error) {
	x := &executionAt{ambush: ambush{execution: e}}
	return x.await(ctx, []uint64{e.options.At}, x.arrived)
}

// arrived is what is done when a thread has come to the address: the call, or
// at the entry of a function whose exit is meant, a breakpoint there.
func (x *executionAt) arrived(t *tracer.Thread) (done bool, err error) {
	x.cost.Attempts++
	if !x.here.Reached(t.ID, x.depth) {
		return false, x.watch.GoOn(t) // a recursive call's return, or another program
	}
	x.here.Disable()
	if x.options.AtExit && x.depth == 0 && !x.here.AtExit() {
		if err := x.followToExit(t); err != nil {
			return false, errors.Join(err, x.watch.LetGo(t))
		}
		return false, nil
	}
	return x.watch.Use(t, &x.cost, x.do)
}

// followToExit lets the thread, which is at the function's entry, run until it returns.
func (x *executionAt) followToExit(t *tracer.Thread) error {
	regs, err := t.Registers()
	if err != nil {
		return err
	}
	back, err := x.caller.process.ReadWord(regs.Rsp)
	if err != nil {
		return err
	}
	x.depth = regs.Rsp + 8
	if err := x.waitAt(back); err != nil {
		return err
	}
	return x.watch.Follow(t, x.here)
}
