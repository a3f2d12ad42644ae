// SPDX-License-Identifier: Apache-2.0

package action

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/objfile/dwarfinfo"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// doubleBytes is the size of the only floating-point type that calls pass.
const doubleBytes = 8

// typedCall makes arguments and result of a call what the function's types want, where
// debug information tells them: a whole number for a double is a double. What cannot
// be passed is refused.
func typedCall(call *attunev1.CallFunction, found objfile.Resolved) (*attunev1.CallFunction, error) {
	f, known := signature(found)
	if !known {
		return call, nil
	}
	call = proto.CloneOf(call)
	for i := range min(len(call.GetArguments()), len(f.Parameters)) {
		if err := typedArgument(&call.Arguments[i], f.Parameters[i].Type); err != nil {
			return nil, fmt.Errorf("%w: parameter %d of %s %w", access.ErrRefused, i, call.GetSymbol(), err)
		}
	}
	if f.Result.Kind != dwarfinfo.Float {
		return call, nil
	}
	if f.Result.Size != doubleBytes {
		return nil, fmt.Errorf("%w: %s returns a %s: of real numbers, only a double can be read", access.ErrRefused, call.GetSymbol(), f.Result.Name)
	}
	call.Result = attunev1.ResultType_RESULT_TYPE_REAL
	if whole, ok := access.Whole(call.GetExpect()); ok {
		call.Expect = access.Real(float64(whole))
	}
	return call, nil
}

// typedArgument makes an argument what its type wants.
func typedArgument(argument **attunev1.Value, t dwarfinfo.Type) error {
	whole, isWhole := access.Whole(*argument)
	_, isReal := (*argument).GetKind().(*attunev1.Value_Real)
	switch {
	case t.Kind == dwarfinfo.Float && t.Size != doubleBytes || t.Kind == dwarfinfo.LongDouble:
		return fmt.Errorf("is a %s: of real numbers, only a double can be passed", t.Name)
	case t.Kind == dwarfinfo.Float && isWhole:
		*argument = access.Real(float64(whole))
	case (t.Kind == dwarfinfo.Integer || t.Kind == dwarfinfo.Pointer) && isReal:
		return fmt.Errorf("is a %s: it takes no real number", t.Name)
	}
	return nil
}
