// SPDX-License-Identifier: Apache-2.0

package sites

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"

	"golang.org/x/sys/cpu"

	"github.com/attune-hpc/attune/controller/patch"
	"github.com/attune-hpc/attune/internal/objfile"
)

// builder makes what the spots of a process lead to, in its memory. It is for one
// goroutine, which holds the lock of the Sites.
type builder struct {
	writer
	memory *codeMemory
}

// build makes a landing, a pointer, and a program that does nothing but what
// the code does anyway.
func (b builder) build(ctx context.Context, site patch.Site, hook uint64) (*spot, error) {
	p := &spot{site: site, hook: hook}
	lay := b.layNarrow
	if site.Wide() {
		lay = b.layWide
	}
	landing, err := lay(ctx, p)
	if err != nil {
		return nil, err
	}
	address, err := b.program(ctx, p, patch.Program{})
	if err != nil {
		return nil, err
	}
	if err := b.write(p.site.Landing, landing); err != nil {
		return nil, err
	}
	return p, b.write(p.pointer, binary.LittleEndian.AppendUint64(nil, address))
}

// layNarrow finds the place of a landing that the code itself gives, and a
// window; it returns what is to stand at the landing.
func (b builder) layNarrow(ctx context.Context, p *spot) (landing []byte, err error) {
	if p.site, p.pointer, err = b.memory.landing(ctx, b.writer, p.site); err != nil {
		return nil, err
	}
	if err := b.enter(ctx, p); err != nil {
		return nil, err
	}
	return patch.LandingCode(p.site.Landing, p.pointer)
}

// layWide puts the landing of a whole jump into the window itself.
func (b builder) layWide(ctx context.Context, p *spot) (landing []byte, err error) {
	if err := b.enter(ctx, p); err != nil {
		return nil, err
	}
	at, err := p.window.Take(patch.SlotBytes)
	if err != nil {
		return nil, err
	}
	if p.site, err = p.site.To(at); err != nil {
		return nil, err
	}
	landing, p.pointer, err = p.site.OwnLanding()
	return landing, err
}

// enter gives a spot a window, and a spare slot in it.
func (b builder) enter(ctx context.Context, p *spot) (err error) {
	if p.window, err = b.memory.windowFor(ctx, b.writer, p.site.Address); err == nil {
		p.spare, err = p.window.Take(patch.SlotBytes)
		p.programs = make(map[string]uint64)
	}
	return err
}

// program writes a program into the spot's window, unless it is there, and
// returns its address. Nothing leads to it yet.
func (b builder) program(ctx context.Context, p *spot, do patch.Program) (uint64, error) {
	key := do.Key()
	if address, ok := p.programs[key]; ok {
		return address, nil
	}
	if p.window == nil {
		if err := b.moveOn(ctx, p); err != nil {
			return 0, err
		}
		return b.program(ctx, p, do)
	}
	environment, err := b.environment(p, do)
	if err != nil {
		return 0, err
	}
	trial, err := do.Code(p.site, p.window.Start, environment)
	if err != nil {
		return 0, err
	}
	address, err := p.window.Take(len(trial))
	if errors.Is(err, patch.ErrFull) {
		if err := b.moveOn(ctx, p); err != nil {
			return 0, err
		}
		return b.program(ctx, p, do)
	}
	if err != nil {
		return 0, err
	}
	code, err := do.Code(p.site, address, environment)
	if err != nil {
		return 0, err
	}
	if err := b.write(address, code); err != nil {
		return 0, err
	}
	p.programs[key] = address
	return address, nil
}

// moveOn has a spot go on in another window: from now on its pointer leads to
// a jump in the old one, through a pointer of its own, which is the one that
// changes. The first program there does what is done now.
func (b builder) moveOn(ctx context.Context, p *spot) error {
	next := *p
	if err := b.enter(ctx, &next); err != nil {
		return err
	}
	address, err := b.program(ctx, &next, p.now)
	if err != nil {
		return err
	}
	next.pointer = p.spare + 8
	jump, err := patch.LandingCode(p.spare, next.pointer)
	if err != nil {
		return err
	}
	hop := make([]byte, 16)
	copy(hop, jump)
	binary.LittleEndian.PutUint64(hop[8:], address)
	if err := b.write(p.spare, hop); err != nil {
		return err
	}
	if err := b.point(p.pointer, p.spare); err != nil {
		return err
	}
	*p = next
	return nil
}

// environment is what a program needs to know.
func (b builder) environment(p *spot, do patch.Program) (patch.Environment, error) {
	e := patch.Environment{Hook: p.hook, Spare: p.spare, XSave: cpu.X86.HasOSXSAVE}
	if !slices.ContainsFunc(do.Steps, func(step patch.Step) bool { return step.Call != nil }) {
		return e, nil
	}
	if b.memory.errno == nil {
		images, err := b.process.Images()
		if err != nil {
			return e, err
		}
		// Without a C library there is no errno.
		found, _ := objfile.ResolveIn(images, "libc.so*", "__errno_location", objfile.Function)
		b.memory.errno = &found.Address
	}
	e.ErrnoLocation = *b.memory.errno
	return e, nil
}

// lead makes a spot do something else from now on.
func (b builder) lead(ctx context.Context, p *spot, do patch.Program) error {
	address, err := b.program(ctx, p, do)
	if err != nil {
		return err
	}
	if err := b.point(p.pointer, address); err != nil {
		return err
	}
	p.now = do
	return nil
}
