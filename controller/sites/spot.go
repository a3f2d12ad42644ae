// SPDX-License-Identifier: Apache-2.0

package sites

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/cpu"

	"github.com/attune-hpc/attune/controller/patch"
	"github.com/attune-hpc/attune/internal/objfile"
)

// spot is one place whose code is or was patched. What it leads to stays when
// the patch is taken out: a thread may be in it.
//
//	the code      e9 ....            one byte is changed, to this jump and back,
//	                                 or all five (a wide site)
//	the landing   jmp *pointer       in an arena or window, for good
//	the pointer   address            its second byte chooses
//	programs      what is done       in a window, each for good
type spot struct {
	site     patch.Site
	hook     uint64            // of DMLib, for measuring
	pointer  uint64            // where the pointer stands
	window   *patch.Window     // nil: inherited, and nobody knows what is free in it
	spare    uint64            // a slot of the window, to go on in another
	programs map[string]uint64 // by what they do; those in the window
	now      patch.Program     // where the pointer leads
	active   bool              // the jump stands in the code
	beside   error             // that the jump reaches into another function; nil: it does not
}

// build makes a landing, a pointer, and a program that does nothing but what
// the code does anyway.
func (s *Sites) build(ctx context.Context, w writer, site patch.Site, hook uint64) (*spot, error) {
	p := &spot{site: site, hook: hook}
	lay := s.layNarrow
	if site.Wide() {
		lay = s.layWide
	}
	landing, err := lay(ctx, w, p)
	if err != nil {
		return nil, err
	}
	address, err := s.program(ctx, w, p, patch.Program{})
	if err != nil {
		return nil, err
	}
	if err := w.write(p.site.Landing, landing); err != nil {
		return nil, err
	}
	return p, w.write(p.pointer, binary.LittleEndian.AppendUint64(nil, address))
}

// layNarrow finds the place of a landing that the code itself gives, and a
// window; it returns what is to stand at the landing.
func (s *Sites) layNarrow(ctx context.Context, w writer, p *spot) (landing []byte, err error) {
	if p.site, p.pointer, err = s.landing(ctx, w, p.site); err != nil {
		return nil, err
	}
	if err := s.enter(ctx, w, p); err != nil {
		return nil, err
	}
	return patch.LandingCode(p.site.Landing, p.pointer)
}

// layWide puts the landing of a whole jump into the window itself.
func (s *Sites) layWide(ctx context.Context, w writer, p *spot) (landing []byte, err error) {
	if err := s.enter(ctx, w, p); err != nil {
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

// landing chooses the place of a landing, has memory there, and takes a place
// for its pointer.
func (s *Sites) landing(ctx context.Context, w writer, site patch.Site) (patch.Site, uint64, error) {
	site, arena, err := choose(site, s.arenas, regionsOnce(w.pid))
	if err != nil {
		return site, 0, err
	}
	if !slices.Contains(s.arenas, arena) {
		if err := w.mapArena(ctx, arena); err != nil {
			return site, 0, err
		}
		s.arenas = append(s.arenas, arena)
	}
	pointer, err := arena.Take(site.Landing)
	return site, pointer, err
}

// around is how much code and data an instruction may refer to on either side.
const around = 256 << 20

// enter gives a spot a window, and a spare slot in it.
func (s *Sites) enter(ctx context.Context, w writer, p *spot) (err error) {
	if p.window, err = s.windowFor(ctx, w, p.site.Address); err == nil {
		p.spare, err = p.window.Take(patch.SlotBytes)
		p.programs = make(map[string]uint64)
	}
	return err
}

// windowFor finds a window with room for any program of a spot, or has one
// mapped.
func (s *Sites) windowFor(ctx context.Context, w writer, address uint64) (*patch.Window, error) {
	const few = patch.MaxProgramBytes + 3*patch.SlotBytes
	for _, window := range s.windows {
		if window.Free() >= few && window.Reaches(address, around) {
			return window, nil
		}
	}
	used, err := regions(w.pid)
	if err != nil {
		return nil, err
	}
	start, err := patch.WindowNear(address, around, used)
	if err != nil {
		return nil, err
	}
	if err := w.mapAt(ctx, start, start+patch.WindowBytes); err != nil {
		return nil, err
	}
	window := &patch.Window{Start: start}
	s.windows = append(s.windows, window)
	return window, nil
}

// program writes a program into the spot's window, unless it is there, and
// returns its address. Nothing leads to it yet.
func (s *Sites) program(ctx context.Context, w writer, p *spot, do patch.Program) (uint64, error) {
	key := do.Key()
	if address, ok := p.programs[key]; ok {
		return address, nil
	}
	if p.window == nil {
		if err := s.moveOn(ctx, w, p); err != nil {
			return 0, err
		}
		return s.program(ctx, w, p, do)
	}
	environment, err := s.environment(p, do)
	if err != nil {
		return 0, err
	}
	trial, err := do.Code(p.site, p.window.Start, environment)
	if err != nil {
		return 0, err
	}
	address, err := p.window.Take(len(trial))
	if errors.Is(err, patch.ErrFull) {
		if err := s.moveOn(ctx, w, p); err != nil {
			return 0, err
		}
		return s.program(ctx, w, p, do)
	}
	if err != nil {
		return 0, err
	}
	code, err := do.Code(p.site, address, environment)
	if err != nil {
		return 0, err
	}
	if err := w.write(address, code); err != nil {
		return 0, err
	}
	p.programs[key] = address
	return address, nil
}

// moveOn has a spot go on in another window: from now on its pointer leads to
// a jump in the old one, through a pointer of its own, which is the one that
// changes. The first program there does what is done now.
func (s *Sites) moveOn(ctx context.Context, w writer, p *spot) error {
	next := *p
	if err := s.enter(ctx, w, &next); err != nil {
		return err
	}
	address, err := s.program(ctx, w, &next, p.now)
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
	if err := w.write(p.spare, hop); err != nil {
		return err
	}
	if err := w.point(p.pointer, p.spare); err != nil {
		return err
	}
	*p = next
	return nil
}

// environment is what a program needs to know.
func (s *Sites) environment(p *spot, do patch.Program) (patch.Environment, error) {
	e := patch.Environment{Hook: p.hook, Spare: p.spare, XSave: cpu.X86.HasOSXSAVE}
	if !slices.ContainsFunc(do.Steps, func(step patch.Step) bool { return step.Call != nil }) {
		return e, nil
	}
	if s.errno == nil {
		images, err := s.process.Images()
		if err != nil {
			return e, err
		}
		// Without a C library there is no errno.
		found, _ := objfile.ResolveIn(images, "libc.so*", "__errno_location", objfile.Function)
		s.errno = &found.Address
	}
	e.ErrnoLocation = *s.errno
	return e, nil
}

// lead makes a spot do something else from now on.
func (s *Sites) lead(ctx context.Context, w writer, p *spot, do patch.Program) error {
	address, err := s.program(ctx, w, p, do)
	if err != nil {
		return err
	}
	if err := w.point(p.pointer, address); err != nil {
		return err
	}
	p.now = do
	return nil
}

// point makes a pointer lead to another program of its window: its second
// byte changes. The kernel promises no whole words for writes from outside, but
// one byte is old or new.
func (w writer) point(pointer, address uint64) error {
	now, err := w.word(pointer)
	if err != nil {
		return err
	}
	if now/patch.WindowBytes != address/patch.WindowBytes {
		return fmt.Errorf("pointer at %#x leads to %#x, not to the window of %#x", pointer, now, address)
	}
	return w.write(pointer+1, []byte{byte(address >> 8)})
}

// activate makes the code begin with the jump, deactivate as it was. A library
// that is not mapped any more, or anew, is so already.
func (p *spot) activate(ctx context.Context, w writer) error {
	err := w.exchange(ctx, p.site.Address, p.site.Original, p.site.Patched())
	p.active = p.active || err == nil
	return err
}

func (p *spot) deactivate(ctx context.Context, w writer) error {
	if !p.active {
		return nil
	}
	err := w.exchange(ctx, p.site.Address, p.site.Patched(), p.site.Original)
	p.active = err != nil
	return err
}
