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

// A tunlet is held to what its knob says of itself; one that says nothing is the setting
// of its name.
func TestForeignTo(t *testing.T) {
	set := func(object, symbol string) *Action {
		return &Action{Kind: &Action_SetVariable{SetVariable: &SetVariable{Object: object, Symbol: symbol, Size: 4, Value: &Value{Kind: &Value_Integer{Integer: 1}}}}}
	}
	setting := func(name string) *Action {
		return &Action{Kind: &Action_Setting{Setting: &NamedSetting{Name: name}}}
	}
	one := int32(3)
	system := &Action{Kind: &Action_System{System: &SystemSetting{Name: "socket.tcp_nodelay", On: &one}}}
	remove := func(symbol string) *Action {
		return &Action{Kind: &Action_Remove{Remove: &RemoveCall{Function: &Function{Object: "libc.so.6", Symbol: symbol}}}}
	}
	for _, tt := range []struct {
		name string
		knob *Knob
		by   *Action
		is   string
		fits bool
	}{
		{"the setting of its name", &Knob{Name: "a.b"}, setting("a.b"), "setting a.b", true},
		{"in one place", &Knob{Name: "glibc.stdio.size"}, setting("glibc.stdio.size@3"), "setting glibc.stdio.size", true},
		{"of one descriptor", &Knob{Name: "socket.tcp_nodelay"}, system, "setting socket.tcp_nodelay", true},
		{"another setting", &Knob{Name: "batch"}, setting("glibc.malloc.top_pad"), "setting batch", false},
		{"a call that is left out", &Knob{Name: "batch"}, remove("time"), "setting batch", false},
		{"a setting of another name", &Knob{Name: "k", Action: setting("a.b")}, setting("a.b"), "setting a.b", true},
		{"its variable", &Knob{Name: "k", Action: set("*", "batch")}, set("*", "batch"), "variable *:batch", true},
		{"another variable", &Knob{Name: "k", Action: set("*", "batch")}, set("*", "other"), "variable *:batch", false},
		{"any variable", &Knob{Name: "k", Action: set("", "")}, set("app", "x"), "a variable", true},
		{"no variable", &Knob{Name: "k", Action: set("", "")}, setting("k"), "a variable", false},
		{"its function", &Knob{Name: "k", Action: remove("fflush")}, remove("fflush"), "remove libc.so.6:fflush", true},
		{"another function", &Knob{Name: "k", Action: remove("fflush")}, remove("time"), "remove libc.so.6:fflush", false},
	} {
		if got := ForeignTo(tt.knob, tt.by); (got == "") != tt.fits {
			t.Errorf("%s: %q", tt.name, got)
		}
		if got := KnobText(tt.knob); got != tt.is {
			t.Errorf("%s: knob is %q, want %q", tt.name, got, tt.is)
		}
	}
}

// A value that is no number is told of as such, and not as one that is too small.
func TestOutOfBounds(t *testing.T) {
	integer := func(n int64) *Value { return &Value{Kind: &Value_Integer{Integer: n}} }
	text := &Value{Kind: &Value_Text{Text: "x"}}
	bounded := &Knob{Name: "k", Min: integer(1), Max: integer(4)}
	for _, tt := range []struct {
		knob  *Knob
		value *Value
		want  string
	}{
		{bounded, integer(4), ""},
		{bounded, nil, ""},
		{bounded, integer(0), "knob k: 0 is below the least allowed value 1"},
		{bounded, integer(5), "knob k: 5 is above the greatest allowed value 4"},
		{bounded, text, `knob k: "x" is no number, and the knob has bounds`},
		{&Knob{Name: "k"}, text, ""},
	} {
		if got := OutOfBounds(tt.knob, tt.value); got != tt.want {
			t.Errorf("%v: %q, want %q", tt.value, got, tt.want)
		}
	}
}
