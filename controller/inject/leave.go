// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/dmlib/abi"
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
// that lead there already. One of an object that is unloaded meanwhile, or through which
// another function is called than the hook goes on to, is left alone.
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
	behind, err := readBehind(process, l.behind)
	if err != nil {
		return nil, err
	}
	hookables, err := findFresh(process, l, memory.App().Base, images, known)
	if err != nil {
		return nil, err
	}
	fresh := make([]shm.Slot, 0, len(hookables))
	for _, s := range hookables {
		fresh = append(fresh, s.Slot)
	}
	read := func(address uint64) (uint64, error) {
		value, err := proc.ReadWord(process, address)
		if s := hookables[address]; err == nil {
			err = s.goesTo(value, behind[s.name])
		}
		return value, err
	}
	return shm.EachSlot(fresh, func(s *shm.Slot) (bool, error) {
		err := memory.LeadSlot(ctx, s, read)
		return err == nil && s.Old != s.To, nil
	})
}

// findFresh finds the slots, by address, that could lead to the hooks of DMLib, which is loaded
// at base, and are not known.
func findFresh(process proc.Holder, l library, base uint64, images []objfile.Image, known []shm.Slot) (map[uint64]hookable, error) {
	own, _, err := ofProgram(process, images)
	if err != nil {
		return nil, err
	}
	handle, err := process.Hold()
	if err != nil {
		return nil, err
	}
	fresh := make(map[uint64]hookable)
	for _, s := range findSlots(own, l.hooks, findDefiners(handle.PID(), own, l.hooks)) {
		s.To += base
		fresh[s.Address] = s
	}
	for _, s := range known {
		delete(fresh, s.Address)
	}
	return fresh, nil
}

// readBehind reads what the hooks go on to, by name.
func readBehind(process proc.Holder, at uint64) (map[string]uint64, error) {
	content := make([]byte, abi.BehindCount*abi.BehindBytes)
	if err := proc.Read(process, at, content); err != nil {
		return nil, err
	}
	behind := make(map[string]uint64, abi.BehindCount)
	for entry := range slices.Chunk(content, abi.BehindBytes) {
		name, _, _ := bytes.Cut(entry[abi.BehindNameAt:], []byte{0})
		behind[string(name)] = binary.LittleEndian.Uint64(entry[abi.BehindFunctionAt:])
	}
	return behind, nil
}
