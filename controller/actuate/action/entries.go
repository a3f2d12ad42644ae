// SPDX-License-Identifier: Apache-2.0

package action

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/controller/inject"
	"github.com/attune-hpc/attune/controller/patch"
	"github.com/attune-hpc/attune/controller/sites"
	"github.com/attune-hpc/attune/internal/objfile"
)

// patchedFunction is a function that a change does something at, for the journal.
type patchedFunction struct {
	// Name of the action in the process.
	Name string `json:"name"`
	// Device, Inode and Bias are those of the object, Symbol the function.
	Device uint64         `json:"device"`
	Inode  uint64         `json:"inode"`
	Bias   uint64         `json:"bias"`
	Symbol objfile.Symbol `json:"symbol"`
	// AtExit says that it is done at the exits of the function, not at its entry.
	AtExit bool `json:"at_exit,omitempty"`
	// Bytes that are changed there.
	Bytes []sites.Bytes `json:"bytes"`

	fork bool // the process was born with it
}

// entryChange is an action at the entry or the exits of a function.
type entryChange struct {
	process access.Process
	found   objfile.Resolved
	step    patch.Step
}

func (e entryChange) function() sites.Function {
	return sites.Function{Image: e.found.Image, Symbol: e.found.Symbol}
}

// planEntry makes the plan of an action whose function and parts have been
// found and allowed.
func planEntry(r *actuate.Request, found objfile.Resolved, step patch.Step, say actuate.Told) (*actuate.Plan, error) {
	if err := r.RefuseLater("a function is changed"); err != nil {
		return nil, err
	}
	process := r.Process
	if err := step.Check(); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", access.ErrRefused, found.Symbol.Name, err)
	}
	if process.Mailbox() == nil {
		if err := unowned(process); err != nil {
			return nil, fmt.Errorf("%w: %w", access.ErrRefused, err)
		}
	}
	step.Name = r.Origin() + ":" + r.Change.GetId()
	e := entryChange{process: process, found: found, step: step}
	p := &actuate.Plan{Way: access.WayEntry, Told: say, Read: noValue}
	p.Prepare = func(ctx context.Context) error { return e.prepare(ctx, p) }
	p.Run = func(ctx context.Context) (access.Done, error) {
		return access.DoneNow(e.process.Sites().Add(ctx, e.function(), e.step))
	}
	return p, nil
}

// prepare makes room for the patch. Whatever stands against it is a refusal:
// the program does what it did.
func (e entryChange) prepare(ctx context.Context, p *actuate.Plan) error {
	ctx, cancel := context.WithTimeout(ctx, access.DefaultSafePointTimeout)
	defer cancel()
	bytes, err := e.process.Sites().Prepare(ctx, e.function(), e.step)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", access.ErrRefused, e.found.Symbol.Name, err)
	}
	p.Undo = actuate.Undos{&patchedFunction{
		Name: e.step.Name, Device: e.found.Image.Device, Inode: e.found.Image.Inode, Bias: e.found.Image.Bias,
		Symbol: e.found.Symbol, AtExit: e.step.AtExit(), Bytes: bytes,
	}}
	return nil
}

func (*patchedFunction) Kind() string { return "patched" }

func (p *patchedFunction) TakeBack(ctx context.Context, in actuate.Changed) error {
	if !in.InForce() || p.fork {
		return p.restore(ctx, in.Process)
	}
	err := in.Process.Sites().Drop(ctx, p.Name)
	if errors.Is(err, sites.ErrUnknown) {
		return nil // it was never done
	}
	return err
}

// InFork implements [copied] of package actuate.
func (p *patchedFunction) InFork() actuate.Undo {
	in := *p
	in.fork = true
	return &in
}

func (*patchedFunction) Overlaps(actuate.Undo, bool) bool    { return false }
func (*patchedFunction) About(actuate.Changed) actuate.About { return actuate.About{} }

// restore undoes an action at a function from the journal alone: what else is
// done there stays. Where the patch does not tell what is its own, its bytes go
// back.
func (p *patchedFunction) restore(ctx context.Context, process access.Process) error {
	if !process.Alive() {
		return nil
	}
	images, err := process.Images()
	if err != nil {
		return err
	}
	at := slices.IndexFunc(images, func(i objfile.Image) bool {
		return i.Device == p.Device && i.Inode == p.Inode && i.Bias == p.Bias
	})
	if at < 0 {
		return nil // unloaded
	}
	own, f := process.Sites(), sites.Function{Image: images[at], Symbol: p.Symbol}
	names, err := own.Inherited(ctx, f, p.AtExit)
	switch {
	case err != nil:
	case slices.Contains(names, p.Name):
		return own.Drop(ctx, p.Name)
	case len(names) > 0:
		return nil // others are at work there, and this one is not any more
	}
	var errs []error
	for _, b := range p.Bytes {
		err := sites.Restore(ctx, access.Outside{Process: process}, b)
		if errors.Is(err, sites.ErrTouched) {
			err = fmt.Errorf("%w: %w", access.ErrChangedByOthers, err)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// unowned refuses a process that a living controller owns, which patches
// functions as well and would not know.
func unowned(process access.Process) error {
	held, err := process.Hold()
	if err != nil {
		return err
	}
	owner, err := inject.Controller(held)
	if err != nil || owner == 0 {
		return err
	}
	return fmt.Errorf("process %d is under the control of attune (process %d): change its functions by a tunlet, or end that first", process.PID(), owner)
}
