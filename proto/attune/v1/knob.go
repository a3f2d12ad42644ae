// SPDX-License-Identifier: Apache-2.0

package attunev1

import "fmt"

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
