// SPDX-License-Identifier: Apache-2.0

package core

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// adviceID returns an id for what a proposal asks for, the same in another run:
// a hash of tunlet, knobs, actions and executables. It uses the executable's
// path, because its checksum may still be unknown, and leaves out the
// processes, so that the number of ranks does not matter.
func (c *Core) adviceID(p *proposal) string {
	var lines []string
	for _, ch := range p.changes {
		exe := ""
		if pr := c.processes[ch.spec.GetProcess()]; pr != nil {
			exe = pr.executable
		}
		lines = append(lines, ch.spec.GetKnob()+"\x00"+ch.action+"\x00"+exe)
	}
	slices.Sort(lines)
	lines = slices.Compact(lines)
	sum := sha256.Sum256([]byte(p.tunlet.name + "\x00" + strings.Join(lines, "\x00\x00")))
	return hex.EncodeToString(sum[:6])
}

// advise gives a proposal as advice, once per advice and scope.
func (c *Core) advise(p *proposal) {
	p.state, p.doneAt = StateAdvised, c.now
	p.reason = p.spec.GetReason()
	known := slices.ContainsFunc(c.finished, func(q *proposal) bool {
		return q.advice == p.advice && q.spec.GetScope() == p.spec.GetScope()
	})
	if !known {
		c.remember(p)
		c.record("advised", p, p.reason)
	}
	c.notify(p, "advice "+p.advice)
}

// ActionText returns what an action does in one canonical line, empty for an
// action that does nothing.
func ActionText(a *attunev1.Action) string {
	switch k := a.GetKind().(type) {
	case *attunev1.Action_Setting:
		return fmt.Sprintf("set %s=%s", k.Setting.GetName(), attunev1.ValueLiteral(k.Setting.GetValue()))
	case *attunev1.Action_System:
		where := ""
		if k.System.On != nil {
			where = fmt.Sprintf("@%d", k.System.GetOn())
		}
		return fmt.Sprintf("set %s%s=%s", k.System.GetName(), where, attunev1.ValueLiteral(k.System.GetValue()))
	case *attunev1.Action_SetVariable:
		v := k.SetVariable
		return fmt.Sprintf("write %s:%s=%s", v.GetObject(), v.GetSymbol(), attunev1.ValueLiteral(v.GetValue()))
	case *attunev1.Action_CallFunction:
		f := k.CallFunction
		args := make([]string, len(f.GetArguments()))
		for i, v := range f.GetArguments() {
			args[i] = attunev1.ValueLiteral(v)
		}
		return fmt.Sprintf("call %s:%s(%s)", f.GetObject(), f.GetSymbol(), strings.Join(args, ", "))
	}
	return functionText(a)
}

// functionText is ActionText for what changes functions and loads libraries.
func functionText(a *attunev1.Action) string {
	switch k := a.GetKind().(type) {
	case *attunev1.Action_Replace:
		return fmt.Sprintf("replace %s by %s", functionName(k.Replace.GetOld()), functionName(k.Replace.GetNew()))
	case *attunev1.Action_Remove:
		text := "remove " + functionName(k.Remove.GetFunction())
		if k.Remove.GetReturns() != nil {
			text += " returning " + attunev1.ValueLiteral(k.Remove.GetReturns())
		}
		if k.Remove.GetCalledFrom() != nil {
			text += " called from " + functionName(k.Remove.GetCalledFrom())
		}
		return text
	case *attunev1.Action_Parameter:
		text := fmt.Sprintf("pass %s as parameter %d of %s",
			attunev1.ValueLiteral(k.Parameter.GetValue()), k.Parameter.GetParameter(), functionName(k.Parameter.GetFunction()))
		if k.Parameter.GetRequiredOld() != nil {
			text += " instead of " + attunev1.ValueLiteral(k.Parameter.GetRequiredOld())
		}
		return text
	case *attunev1.Action_Insert:
		where := "entry"
		if k.Insert.GetPlace() == attunev1.Place_PLACE_EXIT {
			where = "exit"
		}
		args := make([]string, len(k.Insert.GetArguments()))
		for i, argument := range k.Insert.GetArguments() {
			args[i] = argumentText(argument)
		}
		return fmt.Sprintf("call %s(%s) at %s of %s",
			functionName(k.Insert.GetCall()), strings.Join(args, ", "), where, functionName(k.Insert.GetFunction()))
	case *attunev1.Action_Load:
		return "load " + k.Load.GetPath()
	}
	return ""
}

func argumentText(a *attunev1.Argument) string {
	switch k := a.GetKind().(type) {
	case *attunev1.Argument_Parameter:
		return fmt.Sprintf("parameter %d", k.Parameter)
	case *attunev1.Argument_Result:
		return "result"
	}
	return attunev1.ValueLiteral(a.GetConstant())
}

func functionName(f *attunev1.Function) string { return f.GetObject() + ":" + f.GetSymbol() }

// newValue returns the value that an action sets, nil for a call.
func newValue(a *attunev1.Action) *attunev1.Value {
	switch k := a.GetKind().(type) {
	case *attunev1.Action_Setting:
		return k.Setting.GetValue()
	case *attunev1.Action_System:
		return k.System.GetValue()
	case *attunev1.Action_SetVariable:
		return k.SetVariable.GetValue()
	}
	return nil
}

// number returns a value as a number, if it is one.
func number(v *attunev1.Value) (float64, bool) {
	switch k := v.GetKind().(type) {
	case *attunev1.Value_Integer:
		return float64(k.Integer), true
	case *attunev1.Value_Unsigned:
		return float64(k.Unsigned), true
	case *attunev1.Value_Real:
		return k.Real, true
	}
	return 0, false
}

// outOfBounds says why a value is not within a knob's bounds, or is not a
// number although the knob has bounds.
func outOfBounds(k *attunev1.Knob, v *attunev1.Value) string {
	if v == nil {
		return ""
	}
	n, numeric := number(v)
	if low, ok := number(k.GetMin()); ok && (!numeric || !(n >= low)) {
		return fmt.Sprintf("knob %s: %s is below the least allowed value %s", k.GetName(), attunev1.ValueLiteral(v), attunev1.ValueLiteral(k.GetMin()))
	}
	if high, ok := number(k.GetMax()); ok && (!numeric || !(n <= high)) {
		return fmt.Sprintf("knob %s: %s is above the greatest allowed value %s", k.GetName(), attunev1.ValueLiteral(v), attunev1.ValueLiteral(k.GetMax()))
	}
	return ""
}
