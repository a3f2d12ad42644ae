// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/entry"
	"github.com/attune-hpc/attune/controller/ring"
)

// callAtEntry makes a call at the next entry of a function, whose code is
// patched for it and is afterwards what it was. What is measured at the
// function goes on.
func (t *target) callAtEntry(ctx context.Context, memory *ring.Memory, call actuate.Call) (uint64, string, error) {
	f := entry.Function{Image: call.Entry.Image, Symbol: call.Entry.Symbol}
	number, err := t.sites.SafePoint(f)
	if err != nil {
		return 0, "", fmt.Errorf("%w: %s: %w", actuate.ErrRefused, f.Symbol.Name, err)
	}
	if err := t.sites.Measure(ctx, f, number, entry.Where{Entry: true}); err != nil {
		return 0, "", fmt.Errorf("%w: %s: %w", actuate.ErrRefused, f.Symbol.Name, err)
	}
	command := ring.Command{Op: ring.OpCall, At: ring.AtPatch, Point: ring.HookCount + number + 1, Thread: call.Thread}
	command.Args[0] = call.Function
	copy(command.Args[1:], call.Arguments)
	result, err := memory.Run(ctx, command)
	gone := t.sites.Measure(context.WithoutCancel(ctx), f, number, entry.Where{})
	if err := errors.Join(err, gone); err != nil {
		return 0, "", err
	}
	return result.Value, fmt.Sprintf("entry of %s, thread %d", f.Symbol.Name, result.Thread), nil
}
