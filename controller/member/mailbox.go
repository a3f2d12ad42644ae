// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"fmt"

	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/controller/sites"
)

// mailbox runs calls through DMLib.
type mailbox struct {
	executor *shm.Executor
	sites    *sites.Sites
}

var families = map[string]shm.Family{
	"alloc": shm.AtAlloc, "lock": shm.AtLock, "io": shm.AtIO, "stub": shm.AtStub,
}

// Call calls a function at the next hook of the families.
func (m mailbox) Call(ctx context.Context, call access.Call) (uint64, string, error) {
	if call.Entry != nil {
		return m.callAtEntry(ctx, call)
	}
	command := shm.Command{Op: shm.OpCall, Thread: call.Thread}
	for _, name := range call.Families {
		family, ok := families[name]
		if !ok {
			return 0, "", fmt.Errorf("%w: unknown safe point family %q", access.ErrRefused, name)
		}
		command.At |= family
	}
	if command.At == 0 {
		// Where a thread may call the allocator it may call most things.
		command.At = shm.AtAlloc
	}
	command.Args[0] = call.Function
	copy(command.Args[1:], call.Arguments)
	result, err := m.executor.Run(ctx, command)
	if err != nil {
		return 0, "", err
	}
	return result.Value, describe(result), nil
}

// Map maps memory at the next hook, or while the process waits in the gate.
func (m mailbox) Map(ctx context.Context, start, size uint64) error {
	return m.executor.Map(ctx, start, size)
}

// Store changes a GOT slot at the next hook.
func (m mailbox) Store(ctx context.Context, slot access.Word, old, value uint64) error {
	return m.executor.ExchangeSlot(ctx, shm.Slot{
		Address: slot.Address, Old: old, To: value, RELRO: slot.ReadOnly, Origin: slot.Origin, Bias: slot.ImageBias,
	})
}

// describe says where a command ran.
func describe(result shm.Result) string {
	for _, hook := range shm.Hooks() {
		if hook.Index == result.Local {
			return fmt.Sprintf("%s hook, thread %d", hook.Name, result.Thread)
		}
	}
	return fmt.Sprintf("stub %d, thread %d", result.Local-shm.HookCount, result.Thread)
}

// callAtEntry makes a call at the next entry of a function, whose code is
// patched for it and is afterwards what it was. What is measured at the
// function goes on.
func (m mailbox) callAtEntry(ctx context.Context, call access.Call) (uint64, string, error) {
	f := sites.Function{Image: call.Entry.Image, Symbol: call.Entry.Symbol}
	number, err := m.sites.SafePoint(f)
	if err != nil {
		return 0, "", fmt.Errorf("%w: %s: %w", access.ErrRefused, f.Symbol.Name, err)
	}
	if err := m.sites.Measure(ctx, f, number, sites.Where{Entry: true}); err != nil {
		return 0, "", fmt.Errorf("%w: %s: %w", access.ErrRefused, f.Symbol.Name, err)
	}
	command := shm.Command{Op: shm.OpCall, At: shm.AtPatch, Point: shm.HookCount + number + 1, Thread: call.Thread}
	command.Args[0] = call.Function
	copy(command.Args[1:], call.Arguments)
	result, err := m.executor.Run(ctx, command)
	remark := m.restoreEntry(ctx, f, number)
	if err != nil {
		return 0, "", fmt.Errorf("%w%s", err, remark)
	}
	return result.Value, fmt.Sprintf("entry of %s, thread %d%s", f.Symbol.Name, result.Thread, remark), nil
}

// restoreEntry makes an entry what it was before a call was made there, and says so if it
// stays patched. That is no error of the call: it would be taken for one that was not
// made, and be made again.
func (m mailbox) restoreEntry(ctx context.Context, f sites.Function, number int) (remark string) {
	if err := m.sites.Measure(context.WithoutCancel(ctx), f, number, sites.Where{}); err != nil {
		return fmt.Sprintf("; the entry of %s stays patched: %v", f.Symbol.Name, err)
	}
	return ""
}
