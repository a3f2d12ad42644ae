// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"context"
	"errors"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/proc"
)

// GiveBack restores slots, unless they lead somewhere else by now, as far as
// the process comes to a hook before ctx ends. It returns those that still lead
// through a hook, which does nothing once the memory is closed.
func GiveBack(ctx context.Context, memory *shm.Memory, slots []shm.Slot) (stayed []shm.Slot) {
	stayed, _ = shm.EachSlot(slots, func(s *shm.Slot) (bool, error) { // there is no error
		err := memory.GiveBackSlot(ctx, *s)
		return err != nil && !errors.Is(err, unix.EAGAIN), nil
	})
	return stayed
}

// Extend leads slots of objects that a process has loaded since to the hooks,
// as far as it comes to one before ctx ends, and returns them. known are those
// that lead there already. One of an object that is unloaded meanwhile is left
// alone.
func Extend(ctx context.Context, process proc.Holder, memory *shm.Memory, images []objfile.Image, known []shm.Slot) (led []shm.Slot, err error) {
	l, found := library{}, false
	for _, image := range images {
		if image.Matches("libattune-dm*") {
			if l, err = present(image); err != nil {
				return nil, err
			}
			found = true
		}
	}
	if !found {
		return nil, nil // its file cannot be opened: what there is stays hooked
	}
	have := make(map[uint64]bool)
	for _, s := range known {
		have[s.Address] = true
	}
	own, _, err := ofProgram(process, images)
	if err != nil {
		return nil, err
	}
	var fresh []shm.Slot
	base := memory.App().Base
	for _, s := range findSlots(own, l.hooks, nil) {
		if s.To += base; !have[s.Address] {
			fresh = append(fresh, s.Slot)
		}
	}
	read := func(address uint64) (uint64, error) { return proc.ReadWord(process, address) }
	return shm.EachSlot(fresh, func(s *shm.Slot) (bool, error) {
		err := memory.LeadSlot(ctx, s, read)
		return err == nil && s.Old != s.To, nil
	})
}
