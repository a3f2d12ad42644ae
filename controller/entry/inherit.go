// SPDX-License-Identifier: Apache-2.0

package entry

import (
	"context"
	"errors"
	"fmt"

	"github.com/attune-hpc/attune/controller/patch"
)

// maxHops bounds how many windows a patch can have gone through.
const maxHops = 64

// inherit finds a patch that is there already: that of the process that forked
// this one, or of a controller before us. Nil if there is none.
func (s *Sites) inherit(w writer, site patch.Site, code []byte, hook uint64) *spot {
	patched, active := site.Recognize(code)
	if active {
		site = patched
	}
	landing, err := w.read(site.Landing, patch.LandingBytes)
	if err != nil {
		return nil
	}
	pointer, ok := patch.PointerOf(site.Landing, landing)
	for range maxHops {
		if !ok {
			return nil
		}
		at, err := w.word(pointer)
		if err != nil {
			return nil
		}
		head, err := w.read(at, patch.HeadBytes)
		if err != nil {
			return nil
		}
		if size, spare, ok := site.SizeOf(at, head); ok {
			program, err := w.read(at, size)
			if err != nil {
				return nil
			}
			do, err := patch.ProgramOf(program)
			if err != nil {
				return nil
			}
			return &spot{site: site, hook: hook, pointer: pointer, spare: spare, now: do, active: active}
		}
		pointer, ok = patch.PointerOf(at, head)
	}
	return nil
}

// inherited takes over what an inherited place does but measure: the points of
// this process come one by one.
func (s *Sites) inherited(fn *function, p *spot) {
	for _, step := range p.now.Steps {
		if fn.do.has(step.Name) || s.functions.act(KeyOf(fn.Function)) != nil {
			continue
		}
		fn.do.steps = append(fn.do.steps, step)
	}
}

// Inherited returns the names of the actions that a process was born with on a
// function, because its parent had them. They can be dropped.
func (s *Sites) Inherited(ctx context.Context, f Function) (names []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w, err := s.writer()
	if err != nil {
		return nil, err
	}
	fn := s.function(f)
	if err := s.need(ctx, w, fn, true, false); err != nil {
		return nil, err
	}
	for _, step := range fn.do.steps {
		names = append(names, step.Name)
	}
	return names, nil
}

// Restore takes a patch out of a process whose controller is gone: it writes
// Old where New stands. It is no error if Old stands there already, or if the
// file is not mapped there any more; [ErrTouched] if the code is something
// else.
func Restore(pid int, b Byte) error {
	w := writer{pid: pid}
	if b.Offset < 0 || b.Offset >= len(b.Old) || len(b.Old) != len(b.New) {
		return errors.New("a byte of code that makes no sense")
	}
	mapped, err := w.holdsAt(b.Device, b.Inode, b.FileOffset, b.Address)
	if err != nil || !mapped {
		return err
	}
	if err := w.exchange(b.Address, b.Offset, b.New, b.Old); err != nil {
		return fmt.Errorf("code at %#x of process %d: %w", b.Address, pid, err)
	}
	return nil
}
