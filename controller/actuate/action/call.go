// SPDX-License-Identifier: Apache-2.0

package action

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/access"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// ErrCallNotUndoable means that a change was a call of a function: what it did
// is not known, so it cannot be taken back.
const ErrCallNotUndoable = access.Final("a function call cannot be taken back")

// callKind calls a function once.
func callKind() actuate.Kind {
	return actuate.Kind{
		Route: actuate.Route{
			Action:  "call",
			What:    "call once",
			Command: "attune tune call",
			Ways:    callWays,
			Remark:  "The second where DMLib is not in the process, or no thread came to a hook in time, unless a hook was asked for; at the exit of a function (`--after`), and without DMLib or where the entry (`--at`) cannot be patched, by a breakpoint in the debug registers of each thread, or a uprobe where they do not work (with root; not in code that was changed). Up to six integers, addresses, doubles and texts; a float, a long double or a structure cannot be passed.",
			Undo:    "impossible",
		},
		Plan: planCall,
	}
}

// planCall prepares one call of a function, by DMLib or by a stopped thread.
func planCall(_ context.Context, r *actuate.Request) (*actuate.Plan, error) {
	call := r.Change.GetAction().GetCallFunction()
	if err := checkCall(call); err != nil {
		return nil, err
	}
	process, at := r.Process, r.Change.GetSafePoint()
	place, err := access.PlaceOf(process, at)
	if err != nil {
		return nil, err
	}
	found, err := access.LookupCalled(process, call)
	if err != nil {
		return nil, err
	}
	if err := r.Allowed("call", call.GetArguments(), namesOf(found, call.GetObject(), call.GetSymbol())...); err != nil {
		return nil, err
	}
	if call, err = typedCall(call, found); err != nil {
		return nil, err
	}
	i := access.Invocation{
		Name: call.GetSymbol(), Function: found.Address, Arguments: call.GetArguments(), Result: call.GetResult(),
		Place: place,
	}
	ways := waysOfCall(process, at)
	if len(ways) == 0 {
		return nil, fmt.Errorf("%w: %s: the safe point is a hook of DMLib, which is not in the process", access.ErrRefused, call.GetSymbol())
	}
	return callPlan(process, at, call, i, ways), nil
}

// callWays: a hook of DMLib costs no stop.
var callWays = []access.Way{access.WayMailbox, access.WayStopped}

// waysOfCall leaves the stop out where a safe point was chosen, and DMLib where
// it is not.
func waysOfCall(process access.Process, at *attunev1.SafePoint) (ways []access.Way) {
	for _, way := range callWays {
		chosen := at.GetKind() == attunev1.SafePoint_KIND_NEXT_HOOK || len(at.GetFamilies()) > 0
		if way == access.WayMailbox && process.Mailbox() == nil || way == access.WayStopped && chosen {
			continue
		}
		ways = append(ways, way)
	}
	return ways
}

func callPlan(process access.Process, at *attunev1.SafePoint, call *attunev1.CallFunction, i access.Invocation, ways []access.Way) *actuate.Plan {
	var result *attunev1.Value
	made := new(madeCall)
	return &actuate.Plan{
		Way: ways[0], Undo: actuate.Undos{made}, UndoError: ErrCallNotUndoable,
		Told: actuate.Told{Where: call.GetObject() + ":" + call.GetSymbol(), New: describeCall(call)},
		Run: func(ctx context.Context) (access.Done, error) {
			ctx, cancel := access.SafePointContext(ctx, at)
			defer cancel()
			value, how, called, err := access.Invoke(ctx, process, ways, i)
			made.not = !called
			if err == nil && call.GetExpect() != nil && !sameResult(value, call.GetExpect()) {
				err = fmt.Errorf("%s returned %s, expected %s", call.GetSymbol(), attunev1.ValueLiteral(value), attunev1.ValueLiteral(call.GetExpect()))
			}
			result = value
			return how, err
		},
		Read: func() (*attunev1.Value, error) { return result, nil },
	}
}

// madeCall is the undo of a call: there is none.
type madeCall struct{ not bool }

func (*madeCall) Kind() string { return "call" }

func (u *madeCall) TakeBack(_ context.Context, in actuate.Changed) error {
	if u.not || !in.Process.Alive() {
		return nil
	}
	return ErrCallNotUndoable
}

func (*madeCall) Overlaps(actuate.Undo, bool) bool    { return false }
func (*madeCall) About(actuate.Changed) actuate.About { return actuate.About{} }

func checkCall(call *attunev1.CallFunction) error {
	if len(call.GetArguments()) > access.MaxArguments {
		return fmt.Errorf("%w: %s: at most %d arguments", access.ErrRefused, call.GetSymbol(), access.MaxArguments)
	}
	for _, argument := range call.GetArguments() {
		if argument.GetKind() == nil {
			return fmt.Errorf("%w: %s: arguments are integers, addresses, real numbers or texts", access.ErrRefused, call.GetSymbol())
		}
	}
	_, whole := access.Whole(call.GetExpect())
	_, real := call.GetExpect().GetKind().(*attunev1.Value_Real)
	wantsReal := call.GetResult() == attunev1.ResultType_RESULT_TYPE_REAL
	switch {
	case call.GetExpect() == nil:
	case call.GetResult() == attunev1.ResultType_RESULT_TYPE_NONE:
		return fmt.Errorf("%w: %s: it returns nothing that could be expected", access.ErrRefused, call.GetSymbol())
	case wantsReal && !real:
		return fmt.Errorf("%w: %s: what it is expected to return is no real number", access.ErrRefused, call.GetSymbol())
	case !wantsReal && !whole:
		return fmt.Errorf("%w: %s: what it is expected to return is no whole number", access.ErrRefused, call.GetSymbol())
	}
	return nil
}

// sameResult compares results. An int leaves the upper half of its register
// undefined.
func sameResult(got, want *attunev1.Value) bool {
	if real, ok := want.GetKind().(*attunev1.Value_Real); ok {
		return got.GetReal() == real.Real
	}
	a, b := access.RegisterOf(got), access.RegisterOf(want)
	if wide := int64(b); wide >= math.MinInt32 && wide <= math.MaxUint32 {
		return uint32(a) == uint32(b)
	}
	return a == b
}

// describeCall writes a call as in C.
func describeCall(call *attunev1.CallFunction) string {
	arguments := make([]string, 0, len(call.GetArguments()))
	for _, argument := range call.GetArguments() {
		arguments = append(arguments, attunev1.ValueLiteral(argument))
	}
	return fmt.Sprintf("%s(%s)", call.GetSymbol(), strings.Join(arguments, ", "))
}
