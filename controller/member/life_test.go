// SPDX-License-Identifier: Apache-2.0

package member

import (
	"errors"
	"testing"

	"github.com/attune-hpc/attune/controller/shm"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// steps are the transitions of the chart, each with whether it was made.
var steps = map[string]func(*Member) bool{
	"LeaveAlone":         func(m *Member) bool { m.LeaveAlone(errors.New("another user's")); return m.State() == Foreign },
	"AdmitOutside":       func(m *Member) bool { return m.AdmitOutside(false) },
	"AdmitOutside(late)": func(m *Member) bool { return m.AdmitOutside(true) },
	"GiveUpLibrary":      func(m *Member) bool { return m.GiveUpLibrary() },
	"Register":           func(m *Member) bool { return m.Register(new(shm.Memory)) == nil },
	"AdmitInside":        (*Member).AdmitInside,
	"End":                func(m *Member) bool { return m.End() != Gone },
}

// TestChart: each transition leads from each state to where the chart says, and from
// all others nowhere.
func TestChart(t *testing.T) {
	type move struct {
		step string
		to   State
	}
	ways := map[State][]string{
		Seen: {}, Foreign: {"LeaveAlone"}, Outside: {"AdmitOutside"}, Awaiting: {"AdmitOutside(late)"},
		Registered: {"Register"}, Inside: {"Register", "AdmitInside"}, Gone: {"End"},
	}
	chart := map[State][]move{
		Seen: {
			{"LeaveAlone", Foreign}, {"AdmitOutside", Outside}, {"AdmitOutside(late)", Awaiting},
			{"Register", Registered}, {"End", Gone},
		},
		Foreign:    {{"End", Gone}},
		Outside:    {{"Register", Registered}, {"End", Gone}},
		Awaiting:   {{"GiveUpLibrary", Outside}, {"Register", Registered}, {"End", Gone}},
		Registered: {{"AdmitInside", Inside}, {"End", Gone}},
		Inside:     {{"End", Gone}},
		Gone:       {},
	}
	for from, way := range ways {
		for name, step := range steps {
			m := New(&attunev1.Process{Handle: 1}, Options{})
			for _, before := range way {
				steps[before](m)
			}
			want := from
			for _, move := range chart[from] {
				if move.step == name {
					want = move.to
				}
			}
			step(m)
			if got := m.State(); got != want {
				t.Errorf("%s leads from state %d to %d, want %d", name, from, got, want)
			}
		}
	}
}

// TestWhatWasBefore: who ends a member learns in which state it was.
func TestWhatWasBefore(t *testing.T) {
	for _, name := range []string{"", "AdmitOutside", "AdmitOutside(late)"} {
		m := New(&attunev1.Process{Handle: 1}, Options{})
		if step := steps[name]; step != nil {
			step(m)
		}
		if err := m.Register(new(shm.Memory)); err != nil {
			t.Fatal(err)
		}
		if !m.AdmitInside() {
			t.Errorf("%q and registered: it is not admitted", name)
		}
		if before := m.End(); before != Inside || m.Memory() == nil {
			t.Errorf("it ended in state %d", before)
		}
	}
}

// TestStanding: an Analyzer knows of a member once it was told, and the next one has
// to be told again.
func TestStanding(t *testing.T) {
	m := New(&attunev1.Process{}, Options{})
	check := func(what string, told, known bool) {
		t.Helper()
		if m.Told() != told || m.Known() != known {
			t.Errorf("%s: told %t and known %t, want %t and %t", what, m.Told(), m.Known(), told, known)
		}
	}
	m.Hush()
	check("at first, without an Analyzer", false, false)
	m.Tell()
	check("told", true, true)
	m.Hush()
	check("hushed", false, true)
	m.Tell()
	check("told again", true, true)
}

// TestKeep: each keeper has a value of its own for each member.
func TestKeep(t *testing.T) {
	var one, other Keep[int]
	a, b := New(&attunev1.Process{}, Options{}), New(&attunev1.Process{}, Options{})
	*one.Of(a), *other.Of(a), *one.Of(b) = 1, 2, 3
	if *one.Of(a) != 1 || *other.Of(a) != 2 || *one.Of(b) != 3 || *other.Of(b) != 0 {
		t.Errorf("kept %d, %d, %d, %d", *one.Of(a), *other.Of(a), *one.Of(b), *other.Of(b))
	}
}

// TestHooksGoWithTheMember, in their order.
func TestHooksGoWithTheMember(t *testing.T) {
	s := NewSet()
	var order []string
	for _, keeper := range []string{"a", "b"} {
		s.OnLeave(func(m *Member) { order = append(order, keeper) })
	}
	m := New(&attunev1.Process{Handle: 7}, Options{})
	s.Add(m)
	if s.Remove(7) != m || s.Remove(7) != nil || s.Get(7) != nil {
		t.Error("it is still there")
	}
	if err := s.Leave(m); err != nil || len(order) != 2 || order[0] != "a" {
		t.Errorf("hooks %q, %v", order, err)
	}
}
