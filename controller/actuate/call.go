// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"context"
	"errors"
	"fmt"

	"github.com/attune-hpc/attune/controller/ring"
	"github.com/attune-hpc/attune/internal/objfile"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// ErrCallNotUndoable means that a change was a call of a function: what it did
// is not known, so it cannot be taken back.
var ErrCallNotUndoable = errors.New("a function call cannot be taken back")

// maxArguments is what fits into registers on x86-64.
const maxArguments = 6

// planCall prepares one call of an exported function by DMLib.
func planCall(process Process, at *attunev1.SafePoint, call *attunev1.CallFunction) (*plan, error) {
	arguments, err := callArguments(call)
	if err != nil {
		return nil, err
	}
	if _, ok := whole(call.GetExpect()); call.GetExpect() != nil && !ok {
		return nil, fmt.Errorf("%w: %s: what it is expected to return is no whole number", ErrRefused, call.GetSymbol())
	}
	mailbox := process.Mailbox()
	if mailbox == nil {
		return nil, fmt.Errorf("%w: calling %s needs DMLib in the process", ErrRefused, call.GetSymbol())
	}
	if at.GetKind() == attunev1.SafePoint_KIND_NOW {
		return nil, fmt.Errorf("%w: a call at an arbitrary place can deadlock; use safe point \"next hook\"", ErrRefused)
	}
	found, err := resolve(process, call.GetObject(), call.GetSymbol(), objfile.Function)
	if err != nil {
		return nil, err
	}
	var result uint64
	undoError := ErrCallNotUndoable
	return &plan{
		run: func(ctx context.Context) (where string, err error) {
			ctx, cancel := safePointContext(ctx, at)
			defer cancel()
			result, where, err = mailbox.Call(ctx, Call{Function: found.Address, Arguments: arguments, Families: at.GetFamilies(), Thread: int(at.GetThread())})
			if errors.Is(err, ring.ErrNoSafePoint) {
				undoError = nil // it was never called
			}
			if err == nil && call.GetExpect() != nil && result != word(call.GetExpect()) {
				err = fmt.Errorf("%s returned %d, expected %d", call.GetSymbol(), result, word(call.GetExpect()))
			}
			return where, err
		},
		undo: func(context.Context) error { return undoError },
		read: func() (*attunev1.Value, error) { return unsigned(result), nil },
	}, nil
}

func callArguments(call *attunev1.CallFunction) ([]uint64, error) {
	if len(call.GetArguments()) > maxArguments {
		return nil, fmt.Errorf("%w: %s: at most %d arguments", ErrRefused, call.GetSymbol(), maxArguments)
	}
	words := make([]uint64, 0, len(call.GetArguments()))
	for _, argument := range call.GetArguments() {
		switch argument.GetKind().(type) {
		case *attunev1.Value_Integer, *attunev1.Value_Unsigned, *attunev1.Value_Truth:
			words = append(words, word(argument))
		default:
			return nil, fmt.Errorf("%w: %s: arguments are integers or addresses", ErrRefused, call.GetSymbol())
		}
	}
	return words, nil
}

// word is an integer value as a register holds it.
func word(value *attunev1.Value) uint64 {
	switch v := value.GetKind().(type) {
	case *attunev1.Value_Integer:
		return uint64(v.Integer)
	case *attunev1.Value_Unsigned:
		return v.Unsigned
	case *attunev1.Value_Truth:
		if v.Truth {
			return 1
		}
	}
	return 0
}
