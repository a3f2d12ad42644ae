// SPDX-License-Identifier: Apache-2.0

package attunev1

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// ActionDescription is what all who do not execute an action know of it.
type ActionDescription struct {
	// Kind is the name of its kind, in policies and in documents.
	Kind string
	// Text is what it does, in one canonical line.
	Text string
	// Target is what it is done to, without the value: a variable, a function, a setting.
	Target string
	// Value that it sets; nil: none, as for a call.
	Value *Value
}

// DescribeAction describes an action; the zero description for one that does
// nothing. Each kind of action has a case, and nothing else that speaks of actions
// tells them apart: only controller/actuate, which executes them.
func DescribeAction(a *Action) ActionDescription {
	switch k := a.GetKind().(type) {
	case *Action_SetVariable:
		v := k.SetVariable
		target := v.GetObject() + ":" + v.GetSymbol()
		return ActionDescription{"set", fmt.Sprintf("write %s=%s", target, ValueLiteral(v.GetValue())), target, v.GetValue()}
	case *Action_CallFunction:
		f := k.CallFunction
		target := f.GetObject() + ":" + f.GetSymbol()
		return ActionDescription{"call", fmt.Sprintf("call %s(%s)", target, list(f.GetArguments(), ValueLiteral)), target, nil}
	case *Action_Replace:
		target := functionName(k.Replace.GetOld()) + " by " + functionName(k.Replace.GetNew())
		return ActionDescription{"replace", "replace " + target, target, nil}
	case *Action_Remove:
		function, caller := functionName(k.Remove.GetFunction()), callerName(k.Remove.GetCalledFrom())
		return ActionDescription{"remove", "remove " + function + literal(" returning ", k.Remove.GetReturns()) + caller, function + caller, nil}
	case *Action_Parameter:
		p := k.Parameter
		target := fmt.Sprintf("parameter %d of %s", p.GetParameter(), functionName(p.GetFunction()))
		return ActionDescription{"param", fmt.Sprintf("pass %s as %s%s", ValueLiteral(p.GetValue()), target, literal(" instead of ", p.GetRequiredOld())), target, nil}
	case *Action_Insert:
		i := k.Insert
		where := "entry"
		if i.GetPlace() == Place_PLACE_EXIT {
			where = "exit"
		}
		at := fmt.Sprintf("at %s of %s", where, functionName(i.GetFunction()))
		return ActionDescription{
			"insert", fmt.Sprintf("call %s(%s) %s", functionName(i.GetCall()), list(i.GetArguments(), argumentText), at),
			functionName(i.GetCall()) + " " + at, nil,
		}
	case *Action_Load:
		return ActionDescription{"load", "load " + k.Load.GetPath(), k.Load.GetPath(), nil}
	case *Action_Setting:
		return ActionDescription{"setting", fmt.Sprintf("set %s=%s", k.Setting.GetName(), ValueLiteral(k.Setting.GetValue())), baseName(k.Setting.GetName()), k.Setting.GetValue()}
	case *Action_System:
		name := k.System.GetName()
		if k.System.On != nil {
			name += fmt.Sprintf("@%d", k.System.GetOn())
		}
		return ActionDescription{"system", fmt.Sprintf("set %s=%s", name, ValueLiteral(k.System.GetValue())), k.System.GetName(), k.System.GetValue()}
	}
	return ActionDescription{}
}

// baseName is the name of a setting without the number of a place.
func baseName(setting string) string {
	name, _, _ := strings.Cut(setting, "@")
	return name
}

// ActionText returns what an action does in one canonical line, empty for an
// action that does nothing.
func ActionText(a *Action) string { return DescribeAction(a).Text }

// ActionKinds returns the names of all kinds of actions, in the order of the
// protocol.
func ActionKinds() []string {
	var names []string
	kinds := new(Action).ProtoReflect().Descriptor().Oneofs().ByName(protoreflect.Name("kind")).Fields()
	for i := range kinds.Len() {
		action := new(Action)
		empty := action.ProtoReflect().NewField(kinds.Get(i))
		action.ProtoReflect().Set(kinds.Get(i), empty)
		names = append(names, DescribeAction(action).Kind)
	}
	return names
}

// list writes values with commas between them.
func list[T any](values []T, text func(T) string) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = text(v)
	}
	return strings.Join(texts, ", ")
}

// literal is a value behind some words; empty without a value.
func literal(words string, v *Value) string {
	if v == nil {
		return ""
	}
	return words + ValueLiteral(v)
}

func argumentText(a *Argument) string {
	switch k := a.GetKind().(type) {
	case *Argument_Parameter:
		return fmt.Sprintf("parameter %d", k.Parameter)
	case *Argument_Result:
		return "result"
	}
	return ValueLiteral(a.GetConstant())
}

func functionName(f *Function) string { return f.GetObject() + ":" + f.GetSymbol() }

func callerName(f *Function) string {
	if f == nil {
		return ""
	}
	return " called from " + functionName(f)
}

// SafePointNow is [ActionResult]'s safe point of what is done from outside, which people
// need not be told.
const SafePointNow = "now"

// KnobText says what changes of a knob do: "variable *:batch", "setting python.gc.threshold0".
func KnobText(k *Knob) string {
	if k.GetAction() == nil {
		return "setting " + k.GetName()
	}
	of := DescribeAction(k.GetAction())
	switch {
	case of.Kind == "set" && of.Target == anyTarget:
		return "a variable"
	case of.Kind == "set":
		return "variable " + of.Target
	case of.Kind == "system":
		return "setting " + of.Target
	}
	return of.Kind + " " + of.Target
}

// anyTarget is the variable of which neither object nor symbol is named: any.
const anyTarget = ":"

// ForeignTo says why an action is not what changes of a knob do; empty: it is.
func ForeignTo(k *Knob, a *Action) string {
	is := DescribeAction(a)
	of := DescribeAction(k.GetAction())
	if k.GetAction() == nil {
		of = ActionDescription{Kind: "setting", Target: k.GetName()}
		if is.Kind == "system" {
			of.Kind = is.Kind
		}
	}
	if is.Kind == of.Kind && (is.Target == of.Target || of.Kind == "set" && of.Target == anyTarget) {
		return ""
	}
	return fmt.Sprintf("knob %s is %s, and not what would %s; its description says what it is", k.GetName(), KnobText(k), is.Text)
}
