// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/attune-hpc/attune/controller/entry"
	"github.com/attune-hpc/attune/controller/patch"
	"github.com/attune-hpc/attune/controller/ring"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// NewSites returns an owner of the entries of a process that has no DMLib, or
// of whose DMLib this program knows nothing: memory is mapped by a stopped
// thread. It belongs to one process and one goroutine at a time.
func NewSites(process Process) *entry.Sites {
	return entry.NewSites(outside{process}, new(entry.Functions))
}

// outside is a process as entry wants it.
type outside struct{ Process }

func (outside) Memory() *ring.Memory { return nil }

// Rewrite implements [entry.Rewriter].
func (o outside) Rewrite(ctx context.Context, address uint64, from, to []byte) error {
	return RewriteStopped(ctx, o.Process, address, from, to)
}

// Map implements [entry.Mapper].
func (o outside) Map(ctx context.Context, start, size uint64) error {
	return MapStopped(ctx, o.Process, start, size)
}

// Patched is a function that a change does something at, for the journal.
type Patched struct {
	// Name of the action in the process.
	Name string `json:"name"`
	// Device, Inode and Bias are those of the object, Symbol the function.
	Device uint64         `json:"device"`
	Inode  uint64         `json:"inode"`
	Bias   uint64         `json:"bias"`
	Symbol objfile.Symbol `json:"symbol"`
	// Bytes that are changed.
	Bytes []entry.Bytes `json:"bytes"`
}

// entryChange is an action at the entry or the exits of a function.
type entryChange struct {
	*Actuator
	process Process
	name    string
	found   objfile.Resolved
	action  patch.Action
}

func (e entryChange) function() entry.Function {
	return entry.Function{Image: e.found.Image, Symbol: e.found.Symbol}
}

// planEntry makes the plan of an action whose function and parts have been
// found and allowed.
func (a *Actuator) planEntry(process Process, change *attunev1.Change, found objfile.Resolved, action patch.Action, say told) (*plan, error) {
	kind := change.GetSafePoint().GetKind()
	if kind != attunev1.SafePoint_KIND_UNSPECIFIED && kind != attunev1.SafePoint_KIND_NOW {
		return nil, fmt.Errorf("%w: a function is changed at safe point \"now\" only", ErrRefused)
	}
	if err := patch.Check(action); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrRefused, found.Symbol.Name, err)
	}
	if process.Mailbox() == nil {
		if err := unowned(process.PID()); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrRefused, err)
		}
	}
	e := entryChange{Actuator: a, process: process, name: a.options.Origin + ":" + change.GetId(), found: found, action: action}
	p := &plan{way: WayEntry, told: say, read: func() (*attunev1.Value, error) { return nil, nil }} //nolint:nilnil // no value is an answer
	p.prepare = func(ctx context.Context) error { return e.prepare(ctx, p) }
	p.run = func(ctx context.Context) (done, error) {
		return now(e.process.Sites().Add(ctx, e.name, e.function(), e.action))
	}
	return p, nil
}

// prepare makes room for the patch. Whatever stands against it is a refusal:
// the program does what it did.
func (e entryChange) prepare(ctx context.Context, p *plan) error {
	ctx, cancel := context.WithTimeout(ctx, DefaultSafePointTimeout)
	defer cancel()
	bytes, err := e.process.Sites().Prepare(ctx, e.function(), e.action)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrRefused, e.found.Symbol.Name, err)
	}
	p.undo = undos{&Patched{
		Name: e.name, Device: e.found.Image.Device, Inode: e.found.Image.Inode, Bias: e.found.Image.Bias,
		Symbol: e.found.Symbol, Bytes: bytes,
	}}
	return nil
}

func (*Patched) kind() string { return "patched" }

func (p *Patched) takeBack(ctx context.Context, in changed) error {
	if in.actuator == nil {
		return p.restore(ctx, in.process)
	}
	err := in.process.Sites().Drop(ctx, p.Name)
	if errors.Is(err, entry.ErrUnknown) {
		return nil // it was never done
	}
	return err
}

func (*Patched) overlaps(undo, bool) bool { return false }
func (*Patched) about(changed) about      { return about{} }

// restore undoes an action at a function from the journal alone: what else is
// done there stays. Where the patch does not tell what is its own, its bytes go
// back.
func (p *Patched) restore(ctx context.Context, process Process) error {
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
	sites, f := process.Sites(), entry.Function{Image: images[at], Symbol: p.Symbol}
	names, err := sites.Inherited(ctx, f)
	if err == nil && slices.Contains(names, p.Name) {
		return sites.Drop(ctx, p.Name)
	}
	var errs []error
	for _, b := range p.Bytes {
		if err == nil && len(names) > 0 && b.Address == p.Bytes[0].Address {
			continue // others are at work there, and this one is not any more
		}
		err := entry.Restore(ctx, outside{process}, b)
		if errors.Is(err, entry.ErrTouched) {
			err = fmt.Errorf("%w: %w", ErrChangedByOthers, err)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// unowned refuses a process that a living controller owns, which patches
// functions as well and would not know.
func unowned(pid int) error {
	owner, err := controllerOf(pid)
	if err != nil || owner == 0 {
		return err
	}
	return fmt.Errorf("process %d is under the control of attune (process %d): change its functions by a tunlet, or end that first", pid, owner)
}

// identityOf is that of a process which was checked a moment ago.
func identityOf(pid int) (*journaled, error) {
	identity, err := procid.Of(pid)
	return &journaled{identity: identity}, err
}
