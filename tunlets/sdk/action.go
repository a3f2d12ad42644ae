// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Action is one tuning action; made by SetVariable, CallFunction, Setting,
// SystemSetting, ReplaceFunction and the other functions of this file.
type Action struct {
	pb *attunev1.Action
}

// SetVariable writes a global variable of 1, 2, 4 or 8 bytes. Object is the
// base name pattern of the binary or library that defines the symbol.
func SetVariable(object, symbol string, size uint32, value Value) Action {
	return Action{&attunev1.Action{Kind: &attunev1.Action_SetVariable{
		SetVariable: &attunev1.SetVariable{
			Object: object, Symbol: symbol, Size: size, Value: value.pb,
		},
	}}}
}

// SetVariableFrom is SetVariable, done only if old is the present value.
func SetVariableFrom(object, symbol string, size uint32, old, value Value) Action {
	a := SetVariable(object, symbol, size, value)
	a.pb.GetSetVariable().RequiredOld = old.pb
	return a
}

// CallFunction calls an exported function once, with up to six integer or
// pointer arguments. Expect is the result that means success; a zero Value
// accepts any.
func CallFunction(object, symbol string, expect Value, arguments ...Value) Action {
	call := &attunev1.CallFunction{Object: object, Symbol: symbol, Expect: expect.pb}
	for _, a := range arguments {
		call.Arguments = append(call.Arguments, a.pb)
	}
	return Action{&attunev1.Action{Kind: &attunev1.Action_CallFunction{CallFunction: call}}}
}

// Function names one function: the base name pattern of the binary or library
// that defines it, and its symbol as measure points take it.
type Function struct{ Object, Symbol string }

func (f Function) proto() *attunev1.Function {
	return &attunev1.Function{Object: f.Object, Symbol: f.Symbol}
}

// ReplaceFunction makes calls of one function go to another of the same
// parameters and result, which LoadLibrary may have brought.
func ReplaceFunction(old, other Function) Action {
	return Action{&attunev1.Action{Kind: &attunev1.Action_Replace{
		Replace: &attunev1.ReplaceFunction{Old: old.proto(), New: other.proto()},
	}}}
}

// RemoveCall makes a function return at once; the zero Value stands for
// nothing.
func RemoveCall(function Function, returns Value) Action {
	return Action{&attunev1.Action{Kind: &attunev1.Action_Remove{
		Remove: &attunev1.RemoveCall{Function: function.proto(), Returns: returns.pb},
	}}}
}

// RemoveCallFrom is RemoveCall for the calls from one function only.
func RemoveCallFrom(caller, function Function, returns Value) Action {
	a := RemoveCall(function, returns)
	a.pb.GetRemove().CalledFrom = caller.proto()
	return a
}

// ChangeParameter gives a function another value for a parameter, numbered from 0 as the
// calling convention counts registers: integers and addresses on their own, and Reals on
// their own. A structure passed by value takes up to two numbers, the address of a large
// result number 0.
func ChangeParameter(function Function, parameter uint32, value Value) Action {
	return Action{&attunev1.Action{Kind: &attunev1.Action_Parameter{
		Parameter: &attunev1.ChangeParameter{Function: function.proto(), Parameter: parameter, Value: value.pb},
	}}}
}

// ChangeParameterFrom is ChangeParameter where old is passed.
func ChangeParameterFrom(function Function, parameter uint32, old, value Value) Action {
	a := ChangeParameter(function, parameter, value)
	a.pb.GetParameter().RequiredOld = old.pb
	return a
}

// InsertCall has a function call another one, with constants, before it runs.
// The thread may hold any lock then.
func InsertCall(function, call Function, constants ...Value) Action {
	insert := &attunev1.InsertCall{Function: function.proto(), Call: call.proto(), Place: attunev1.Place_PLACE_ENTRY}
	for _, c := range constants {
		insert.Arguments = append(insert.Arguments, &attunev1.Argument{Kind: &attunev1.Argument_Constant{Constant: c.pb}})
	}
	return Action{&attunev1.Action{Kind: &attunev1.Action_Insert{Insert: insert}}}
}

// LoadLibrary has the process load a shared object, which must define the
// symbol unless that is empty. It stays when the change is undone.
func LoadLibrary(path, symbol string) Action {
	return Action{&attunev1.Action{Kind: &attunev1.Action_Load{
		Load: &attunev1.LoadLibrary{Path: path, Symbol: symbol},
	}}}
}

// Setting changes a setting that the controller knows by name, with its way
// in, its way back and its bounds. A control variable of MPI, "mpi_t." and its name,
// changes in all ranks before the same call of a collective operation: the proposal
// has a change of it for every rank of the job.
func Setting(name string, value Value) Action {
	return Action{&attunev1.Action{Kind: &attunev1.Action_Setting{
		Setting: &attunev1.NamedSetting{Name: name, Value: value.pb},
	}}}
}

// SystemSetting changes what the operating system keeps for a process,
// wherever the knob applies: in every thread, every socket of the kind, or once
// for the process. Names and values are in docs/reference/knobs.md, e.g.
// "socket.tcp_nodelay" with Bool(true), "thread.affinity" with Text("0-3").
func SystemSetting(name string, value Value) Action {
	return Action{&attunev1.Action{Kind: &attunev1.Action_System{
		System: &attunev1.SystemSetting{Name: name, Value: value.pb},
	}}}
}

// SystemSettingOn is SystemSetting for one thread or descriptor, by number.
func SystemSettingOn(name string, number int32, value Value) Action {
	a := SystemSetting(name, value)
	a.pb.GetSystem().On = &number
	return a
}

// Value is what the action sets a setting or a variable to; the zero Value for other actions.
func (a Action) Value() Value {
	for _, v := range []*attunev1.Value{a.pb.GetSetting().GetValue(), a.pb.GetSystem().GetValue(), a.pb.GetSetVariable().GetValue()} {
		if v != nil {
			return Value{v}
		}
	}
	return Value{}
}

// SafePoint says when an action may be executed; the zero SafePoint is the
// action's own default.
type SafePoint struct {
	// Now: at once, from outside, without stopping the process.
	Now bool
	// NextHook: at the next DMLib hook, in whichever thread comes.
	NextHook bool
	// Families of hooks for NextHook (alloc, lock, io, stub); empty: those
	// that the action is safe in.
	Families []string
	// Timeout of the wait; 0: two seconds.
	Timeout time.Duration
}

// Change is one action on one knob of one process.
type Change struct {
	// Knob is the name under which conflicts and the report know it; empty:
	// the name of the setting, with @NUMBER behind it for one thread or
	// descriptor. What comes before the @ is a knob of the Description; each place
	// has its own conflicts and its own pauses.
	Knob string
	// Process to change.
	Process Handle
	// Action to take.
	Action Action
	// SafePoint at which to take it.
	SafePoint SafePoint
}

// Proposal asks for changes that are applied all or nothing and judged
// together.
type Proposal struct {
	// ID is unique within the tunlet.
	ID string
	// Changes to make.
	Changes []Change
	// Scope of the objective that judges it; see Host.Objective.
	Scope string
	// Reason for people, with the figures that led to it.
	Reason string
	// PredictedGain as the model has it: 4 = four times the objective;
	// 0: unknown.
	PredictedGain float64
	// Confidence that the change helps, 0 to 1.
	Confidence float64
	// ProcessScopes are the scopes of the objective of each single process, where
	// the change in one process helps it alone. From four processes on, the change
	// is then tried in one of them first, a canary, and made in the others only if
	// it was kept there. Nil: all are changed at one time.
	ProcessScopes map[Handle]string
	// Replaces is the id of a kept proposal of this tunlet that makes room for this one,
	// which changes the same knob: it is taken back first, and tried again if this one is
	// not kept, or gains less. Gains, the predicted one too, are over the program as it is
	// without either. Empty: none; a knob that is changed already is not changed again.
	Replaces string
}

// Number is the number at the end of the id, behind a hyphen, where the tunlet numbers its
// proposals; 0: there is none. A tunlet that was started again goes on behind those that it
// is told of.
func (p Proposal) Number() int {
	n, err := strconv.Atoi(p.ID[strings.LastIndexByte(p.ID, '-')+1:])
	if err != nil {
		return 0
	}
	return n
}

func (s SafePoint) proto() *attunev1.SafePoint {
	kind := attunev1.SafePoint_KIND_UNSPECIFIED
	switch {
	case s.Now:
		kind = attunev1.SafePoint_KIND_NOW
	case s.NextHook:
		kind = attunev1.SafePoint_KIND_NEXT_HOOK
	case s.Timeout == 0:
		return nil
	}
	return &attunev1.SafePoint{Kind: kind, Families: s.Families, TimeoutNanos: int64(s.Timeout)}
}

// name is that of a setting, with the place if it is about one; empty for other
// actions.
func (a Action) name() string {
	if name := a.pb.GetSetting().GetName(); name != "" {
		return name
	}
	if system := a.pb.GetSystem(); system != nil && system.On != nil {
		return fmt.Sprintf("%s@%d", system.GetName(), system.GetOn())
	}
	return a.pb.GetSystem().GetName()
}

func safePointFrom(s *attunev1.SafePoint) SafePoint {
	return SafePoint{
		Now: s.GetKind() == attunev1.SafePoint_KIND_NOW, NextHook: s.GetKind() == attunev1.SafePoint_KIND_NEXT_HOOK,
		Families: s.GetFamilies(), Timeout: time.Duration(s.GetTimeoutNanos()),
	}
}

func (c Change) proto() *attunev1.Change {
	knob := c.Knob
	if knob == "" {
		knob = c.Action.name()
	}
	return &attunev1.Change{
		Knob: knob, Process: uint64(c.Process), Action: c.Action.pb, SafePoint: c.SafePoint.proto(),
	}
}

func (p Proposal) proto() *attunev1.Proposal {
	out := &attunev1.Proposal{
		Id: p.ID, Scope: p.Scope, Reason: p.Reason,
		PredictedGain: p.PredictedGain, Confidence: p.Confidence, Replaces: p.Replaces,
	}
	for _, c := range p.Changes {
		out.Changes = append(out.Changes, c.proto())
	}
	if len(p.ProcessScopes) > 0 {
		out.ProcessScopes = make(map[uint64]string, len(p.ProcessScopes))
		for process, scope := range p.ProcessScopes {
			out.ProcessScopes[uint64(process)] = scope
		}
	}
	return out
}

func proposalFrom(p *attunev1.Proposal) *Proposal {
	out := &Proposal{
		ID: p.GetId(), Scope: p.GetScope(), Reason: p.GetReason(),
		PredictedGain: p.GetPredictedGain(), Confidence: p.GetConfidence(), Replaces: p.GetReplaces(),
	}
	for _, c := range p.GetChanges() {
		out.Changes = append(out.Changes, Change{
			Knob: c.GetKnob(), Process: Handle(c.GetProcess()), Action: Action{c.GetAction()}, SafePoint: safePointFrom(c.GetSafePoint()),
		})
	}
	for process, scope := range p.GetProcessScopes() {
		if out.ProcessScopes == nil {
			out.ProcessScopes = map[Handle]string{}
		}
		out.ProcessScopes[Handle(process)] = scope
	}
	return out
}
