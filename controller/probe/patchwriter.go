// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/patch"
	"github.com/attune-hpc/attune/controller/ring"
	"github.com/attune-hpc/attune/internal/procmem"
)

// patchWriter writes entry patches into a process from outside. It is safe
// while the process runs: islands and landings are written before anything
// leads to them, and a function changes in one byte.
type patchWriter struct {
	memory *ring.Memory
	hook   uint64 // what islands call
	pid    int
}

// errTouched says that a function is not what its file says.
var errTouched = fmt.Errorf("%w: its code is not what its file says: a debugger, a uprobe or another tool is at work", patch.ErrUnpatchable)

// untouched refuses code that is not as the file has it.
func (w patchWriter) untouched(site patch.Site) error {
	code, err := w.read(site.Address, len(site.Original))
	if err == nil && !bytes.Equal(code, site.Original) {
		err = errTouched
	}
	return err
}

// has says whether a landing and island of ours stand already and carry the
// number.
func (w patchWriter) has(site patch.Site, number int) bool {
	landing, err := w.read(site.Landing, patch.JumpBytes)
	if err != nil {
		return false
	}
	at, ok := patch.JumpTarget(site.Landing, landing)
	if !ok {
		return false
	}
	island, err := w.read(at, patch.IslandBytes)
	if err != nil {
		return false
	}
	found, ok := site.NumberOf(island)
	return ok && int(found) == number
}

// mapArena has DMLib map the memory, at its next hook or in the start gate.
func (w patchWriter) mapArena(ctx context.Context, start, end uint64) error {
	used, err := regions(w.pid)
	if err != nil {
		return err
	}
	if err := patch.Placeable(start, end, used); err != nil {
		return err
	}
	_, err = w.memory.Run(ctx, ring.Command{
		Op: ring.OpMap, At: anyHook | ring.AtPatch | ring.AtGate, Args: [8]uint64{start, end - start},
	})
	if errors.Is(err, unix.EEXIST) {
		err = fmt.Errorf("%w: %w", patch.ErrUnpatchable, err)
	}
	return err
}

// build writes an island and the landing that leads to it.
func (w patchWriter) build(site patch.Site, at uint64, number int) error {
	island, err := site.Island(at, uint32(number), w.hook)
	if err != nil {
		return err
	}
	landing, err := patch.Jump(site.Landing, at)
	if err != nil {
		return err
	}
	if err := w.write(at, island); err != nil {
		return err
	}
	return w.write(site.Landing, landing)
}

// activate makes a function begin with the jump, unless it does so already.
func (w patchWriter) activate(site patch.Site) error {
	return w.exchange(site, site.Original, site.Patched())
}

// deactivate gives a function its first byte back. A library that is not
// mapped any more, or anew, has it already.
func (w patchWriter) deactivate(site patch.Site) error {
	return w.exchange(site, site.Patched(), site.Original)
}

// exchange writes the first byte of to where from is, and reads it back.
func (w patchWriter) exchange(site patch.Site, from, to []byte) error {
	code, err := w.read(site.Address, len(to))
	switch {
	case err != nil:
		return err
	case bytes.Equal(code, to):
		return nil
	case !bytes.Equal(code, from):
		return errTouched
	}
	return w.write(site.Address, to[:1])
}

func (w patchWriter) read(address uint64, size int) ([]byte, error) {
	code := make([]byte, size)
	err := procmem.Read(w.pid, address, code)
	return code, err
}

func (w patchWriter) write(address uint64, code []byte) error {
	if err := procmem.WriteReadOnly(w.pid, address, code); err != nil {
		return err
	}
	written, err := w.read(address, len(code))
	if err == nil && !bytes.Equal(written, code) {
		err = fmt.Errorf("code at %#x of process %d reads back differently", address, w.pid)
	}
	return err
}
