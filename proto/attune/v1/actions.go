// SPDX-License-Identifier: Apache-2.0

package attunev1

import (
	"fmt"
	"strings"
)

// ActionText returns what an action does in one canonical line, empty for an
// action that does nothing.
func ActionText(a *Action) string {
	switch k := a.GetKind().(type) {
	case *Action_Setting:
		return fmt.Sprintf("set %s=%s", k.Setting.GetName(), ValueLiteral(k.Setting.GetValue()))
	case *Action_System:
		where := ""
		if k.System.On != nil {
			where = fmt.Sprintf("@%d", k.System.GetOn())
		}
		return fmt.Sprintf("set %s%s=%s", k.System.GetName(), where, ValueLiteral(k.System.GetValue()))
	case *Action_SetVariable:
		v := k.SetVariable
		return fmt.Sprintf("write %s:%s=%s", v.GetObject(), v.GetSymbol(), ValueLiteral(v.GetValue()))
	case *Action_CallFunction:
		f := k.CallFunction
		args := make([]string, len(f.GetArguments()))
		for i, v := range f.GetArguments() {
			args[i] = ValueLiteral(v)
		}
		return fmt.Sprintf("call %s:%s(%s)", f.GetObject(), f.GetSymbol(), strings.Join(args, ", "))
	}
	return functionText(a)
}

// functionText is ActionText for what changes functions and loads libraries.
func functionText(a *Action) string {
	switch k := a.GetKind().(type) {
	case *Action_Replace:
		return fmt.Sprintf("replace %s by %s", functionName(k.Replace.GetOld()), functionName(k.Replace.GetNew()))
	case *Action_Remove:
		text := "remove " + functionName(k.Remove.GetFunction())
		if k.Remove.GetReturns() != nil {
			text += " returning " + ValueLiteral(k.Remove.GetReturns())
		}
		if k.Remove.GetCalledFrom() != nil {
			text += " called from " + functionName(k.Remove.GetCalledFrom())
		}
		return text
	case *Action_Parameter:
		text := fmt.Sprintf("pass %s as parameter %d of %s",
			ValueLiteral(k.Parameter.GetValue()), k.Parameter.GetParameter(), functionName(k.Parameter.GetFunction()))
		if k.Parameter.GetRequiredOld() != nil {
			text += " instead of " + ValueLiteral(k.Parameter.GetRequiredOld())
		}
		return text
	case *Action_Insert:
		where := "entry"
		if k.Insert.GetPlace() == Place_PLACE_EXIT {
			where = "exit"
		}
		args := make([]string, len(k.Insert.GetArguments()))
		for i, argument := range k.Insert.GetArguments() {
			args[i] = argumentText(argument)
		}
		return fmt.Sprintf("call %s(%s) at %s of %s",
			functionName(k.Insert.GetCall()), strings.Join(args, ", "), where, functionName(k.Insert.GetFunction()))
	case *Action_Load:
		return "load " + k.Load.GetPath()
	}
	return ""
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
