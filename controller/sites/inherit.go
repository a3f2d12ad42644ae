// SPDX-License-Identifier: Apache-2.0

package sites

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/attune-hpc/attune/controller/patch"
)

// maxHops bounds how many windows a patch can have gone through.
const maxHops = 64

// inherit finds a patch that is there already: that of the process that forked
// this one, or of a controller before us. Nil if there is none.
func (w writer) inherit(site patch.Site, code []byte, hook uint64) *spot {
	patched, active := site.Recognize(code)
	switch {
	case active:
		site = patched
	case site.Wide():
		return nil // where it led nobody knows
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
			p := &spot{site: site, hook: hook, pointer: pointer, spare: spare, active: active}
			if p.now, err = w.programAt(at, size); err != nil {
				return nil
			}
			return p
		}
		pointer, ok = patch.PointerOf(at, head)
	}
	return nil
}

func (w writer) programAt(at uint64, size int) (patch.Program, error) {
	program, err := w.read(at, size)
	if err != nil {
		return patch.Program{}, err
	}
	return patch.ProgramOf(program)
}

// Restore takes a patch out of a process whose controller is gone: it writes
// Old where New stands. It is no error if Old stands there already, or if the
// file is not mapped there any more; [ErrTouched] if the code is something
// else.
func Restore(ctx context.Context, process Process, b Bytes) error {
	w := writer{process: process}
	if len(b.Old) != len(b.New) || bytes.Equal(b.Old, b.New) {
		return errors.New("a change of code that makes no sense")
	}
	mapped, err := w.holdsAt(b.Device, b.Inode, b.FileOffset, b.Address)
	if err != nil || !mapped {
		return err
	}
	if err := w.exchange(ctx, b.Address, b.New, b.Old); err != nil {
		return fmt.Errorf("code at %#x of process %d: %w", b.Address, process.PID(), err)
	}
	return nil
}
