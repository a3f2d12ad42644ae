// SPDX-License-Identifier: Apache-2.0

package core

import (
	"testing"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Descriptor 0 is a descriptor, not "everywhere".
func TestTextOfSystemSettings(t *testing.T) {
	zero := int32(0)
	value := &attunev1.Value{Kind: &attunev1.Value_Integer{Integer: 1}}
	tests := []struct {
		name string
		on   *int32
		want string
	}{
		{"everywhere", nil, "set socket.tcp_nodelay=1"},
		{"one", &zero, "set socket.tcp_nodelay@0=1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			action := &attunev1.Action{Kind: &attunev1.Action_System{
				System: &attunev1.SystemSetting{Name: "socket.tcp_nodelay", On: tt.on, Value: value},
			}}
			if got := attunev1.ActionText(action); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
			if attunev1.DescribeAction(action).Value != value {
				t.Error("its value is not known to the bounds")
			}
		})
	}
}

// Threads and descriptors have other numbers in the next run.
func TestAdviceIDWithoutPlace(t *testing.T) {
	system := func(name string, on *int32, value int64) *attunev1.Action {
		return &attunev1.Action{Kind: &attunev1.Action_System{System: &attunev1.SystemSetting{
			Name: name, On: on, Value: &attunev1.Value{Kind: &attunev1.Value_Integer{Integer: value}},
		}}}
	}
	setting := func(name string) *attunev1.Action {
		return &attunev1.Action{Kind: &attunev1.Action_Setting{Setting: &attunev1.NamedSetting{Name: name}}}
	}
	seven, nine := int32(7), int32(9)
	change := func(knob string, action *attunev1.Action) *attunev1.Change {
		return &attunev1.Change{Knob: knob, Process: 1, Action: action}
	}
	first := []*attunev1.Change{change("n@7", system("n", &seven, 1)), change("s@7", setting("s@7"))}
	tests := []struct {
		name    string
		changes []*attunev1.Change
		same    bool
	}{
		{"itself", first, true},
		{"another place", []*attunev1.Change{change("n@9", system("n", &nine, 1)), change("s@9", setting("s@9"))}, true},
		{"several places", append([]*attunev1.Change{change("n@9", system("n", &nine, 1))}, first...), true},
		{"as a whole", []*attunev1.Change{change("n", system("n", &nine, 1)), change("s", setting("s"))}, true},
		{"another value", []*attunev1.Change{change("n@7", system("n", &seven, 2)), change("s@7", setting("s@7"))}, false},
		{"another knob", []*attunev1.Change{change("m@7", system("n", &seven, 1)), change("s@7", setting("s@7"))}, false},
	}
	c := New(Config{})
	id := func(changes []*attunev1.Change) string {
		return c.admission.newProposal(&tunlet{name: "t"}, &attunev1.Proposal{Changes: changes}).advice
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if same := id(tt.changes) == id(first); same != tt.same {
				t.Errorf("the same id: %v, want %v", same, tt.same)
			}
		})
	}
}
