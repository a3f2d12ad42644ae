// SPDX-License-Identifier: Apache-2.0

package attunev1

import (
	"slices"
	"testing"
)

// Every kind of action has a name of its own, and can be told in words.
func TestActionKinds(t *testing.T) {
	kinds := ActionKinds()
	for _, kind := range kinds {
		if kind == "" {
			t.Error("a kind of action is not described")
		}
	}
	if sorted := slices.Sorted(slices.Values(kinds)); len(slices.Compact(sorted)) != len(kinds) {
		t.Errorf("two kinds have one name: %v", kinds)
	}
}

func TestActionText(t *testing.T) {
	f := func(symbol string) *Function { return &Function{Object: "o", Symbol: symbol} }
	one, two := &Value{Kind: &Value_Integer{Integer: 1}}, &Value{Kind: &Value_Integer{Integer: 2}}
	tests := []struct {
		name   string
		action *Action
		want   string
	}{
		{"nothing", nil, ""},
		{"variable", &Action{Kind: &Action_SetVariable{SetVariable: &SetVariable{Object: "o", Symbol: "v", Value: one}}}, "write o:v=1"},
		{"call", &Action{Kind: &Action_CallFunction{CallFunction: &CallFunction{Object: "o", Symbol: "f", Arguments: []*Value{one, two}}}}, "call o:f(1, 2)"},
		{"replace", &Action{Kind: &Action_Replace{Replace: &ReplaceFunction{Old: f("a"), New: f("b")}}}, "replace o:a by o:b"},
		{"remove", &Action{Kind: &Action_Remove{Remove: &RemoveCall{Function: f("a")}}}, "remove o:a"},
		{"remove some", &Action{Kind: &Action_Remove{Remove: &RemoveCall{Function: f("a"), Returns: one, CalledFrom: f("b")}}}, "remove o:a returning 1 called from o:b"},
		{"parameter", &Action{Kind: &Action_Parameter{Parameter: &ChangeParameter{Function: f("a"), Parameter: 1, Value: two, RequiredOld: one}}}, "pass 2 as parameter 1 of o:a instead of 1"},
		{"insert", &Action{Kind: &Action_Insert{Insert: &InsertCall{Function: f("a"), Call: f("b"), Place: Place_PLACE_EXIT, Arguments: []*Argument{
			{Kind: &Argument_Result{Result: true}}, {Kind: &Argument_Parameter{Parameter: 3}}, {Kind: &Argument_Constant{Constant: one}},
		}}}}, "call o:b(result, parameter 3, 1) at exit of o:a"},
		{"load", &Action{Kind: &Action_Load{Load: &LoadLibrary{Path: "/l.so"}}}, "load /l.so"},
		{"setting", &Action{Kind: &Action_Setting{Setting: &NamedSetting{Name: "n", Value: one}}}, "set n=1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := ActionText(tt.action); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}
