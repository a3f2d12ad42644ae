// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/proc"
)

// atHooks are the safe points at which slots are written: any hook, for a store
// takes no lock of the program.
const atHooks = shm.AtAlloc | shm.AtLock | shm.AtIO | shm.AtStub

// someMailbox is how many commands are posted at a time: the rest of the
// mailbox is left to others.
const someMailbox = shm.MailboxSize - 4

// GiveBack restores slots, unless they lead somewhere else by now, as far as
// the process comes to a hook before ctx ends. It returns those that still lead
// through a hook, which does nothing once the memory is closed.
func GiveBack(ctx context.Context, memory *shm.Memory, slots []Slot) (stayed []Slot) {
	return writeSlots(slots, func(s Slot) (Slot, bool) {
		command := store(s, s.Old)
		command.Args[3], command.Args[4] = 1, s.Hook // only if the hook is there
		_, err := memory.RunRetrying(ctx, command)
		return s, err != nil && !errors.Is(err, unix.EAGAIN) // that leads elsewhere
	})
}

// Extend leads slots of objects that a process has loaded since to the hooks,
// as far as it comes to one before ctx ends, and returns them. known are those
// that lead there already. One of an object that is unloaded meanwhile is left
// alone.
func Extend(ctx context.Context, process proc.Holder, memory *shm.Memory, images []objfile.Image, known []Slot) (led []Slot, err error) {
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
	var fresh []Slot
	base := memory.App().Base
	for _, s := range findSlots(own, l.hooks, nil) {
		if s.Hook += base; !have[s.Address] {
			fresh = append(fresh, s)
		}
	}
	return writeSlots(fresh, func(s Slot) (Slot, bool) {
		old, err := extend(ctx, process, memory, s)
		s.Old = old
		return s, err == nil && s.Old != s.Hook
	}), nil
}

const (
	// extendTries bounds how often a slot is looked at that the loader is not
	// done with, or that it changed before it was written.
	extendTries = 20
	extendPause = 5 * time.Millisecond
)

// extend leads one slot to its hook, and returns what it held.
func extend(ctx context.Context, process proc.Holder, memory *shm.Memory, s Slot) (old uint64, err error) {
	err = unix.EBUSY
	for try := 0; try < extendTries && (errors.Is(err, unix.EBUSY) || errors.Is(err, unix.EAGAIN)); try++ {
		if try > 0 {
			time.Sleep(extendPause)
		}
		if old, err = proc.ReadWord(process, s.Address); err != nil || old == s.Hook {
			return old, err
		}
		if err = unix.EBUSY; s.origin.Relocated(old, s.bias) {
			command := store(s, s.Hook).Of(s.origin, s.bias)
			command.Args[3], command.Args[4] = 1, old
			_, err = memory.Run(ctx, command)
		}
	}
	return old, err
}

// store is the command that writes a slot.
func store(s Slot, value uint64) shm.Command {
	command := shm.Command{Op: shm.OpGOT, At: atHooks, Args: [8]uint64{0: s.Address, 2: value}}
	if s.RELRO {
		command.Args[5] = 1
	}
	return command
}

// writeSlots does something to each slot, several at a time, and returns those
// for which it says true.
func writeSlots(slots []Slot, write func(Slot) (Slot, bool)) (chosen []Slot) {
	var all sync.WaitGroup
	var mu sync.Mutex // guards chosen
	places := make(chan struct{}, someMailbox)
	for _, slot := range slots {
		all.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			if s, ok := write(slot); ok {
				mu.Lock()
				defer mu.Unlock()
				chosen = append(chosen, s)
			}
		})
	}
	all.Wait()
	return chosen
}
