// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/attune-hpc/attune/controller/actuate/system"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// SystemOptions of changes.
type SystemOptions struct {
	// InJob says which processes may share a cgroup that is changed; nil: none.
	InJob func(pid int) bool
	// WithoutUndo allows changes that this user could not take back.
	WithoutUndo bool
}

// systemKinds change what the operating system keeps for a process.
func systemKinds(o SystemOptions) Kinds {
	kind := Kind{
		Route: Route{
			"system", "what the operating system keeps", "attune tune NAME=VALUE", []Way{WaySystem},
			"See docs/reference/knobs.md.", "the old value, as described there",
		},
		Plan: func(_ context.Context, r *Request) (*plan, error) { return o.plan(r, r.Change.GetAction().GetSystem()) },
	}
	return Kinds{Actions: []Kind{kind}, Undos: []func() undo{func() undo { return new(systemStates) }}}
}

// plan prepares a change of what the operating system keeps for a
// process. What stands against it is found before anything is touched, so that
// every error is a refusal.
func (o SystemOptions) plan(r *Request, set *attunev1.SystemSetting) (*plan, error) {
	if err := r.RefuseLater(set.GetName() + " is set"); err != nil {
		return nil, err
	}
	request, err := o.request(set)
	if err != nil {
		return nil, err
	}
	if err := r.Allowed("system", []*attunev1.Value{set.GetValue()}, set.GetName()); err != nil {
		return nil, err
	}
	target, err := system.Open(r.Process.Identity())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	prepared, err := system.Prepare(target, request)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrRefused, err), target.Close())
	}
	states := systemStates(prepared.States())
	p := &plan{
		undo: undos{&states},
		old:  textValue(prepared.Old(), set.GetValue()), undoError: prepared.UndoError(),
		way: WaySystem, unchanged: prepared.Unchanged(),
		told:    told{Where: system.Where(prepared.States()), Old: prepared.Old(), New: prepared.New()},
		read:    func() (*attunev1.Value, error) { return textValue(prepared.New(), set.GetValue()), nil },
		release: func() { _ = target.Close() }, // a pidfd
	}
	p.run = func(context.Context) (done, error) {
		err := prepared.Run(func(more []system.State) error {
			states = append(states, more...)
			return r.Begin(p)
		})
		if err != nil && prepared.Knob().On == system.OnMemory {
			states = nil // advice was not taken, so there is nothing to take back
		}
		return now(err)
	}
	return p, nil
}

// systemStates is the undo of a change of what the operating system keeps.
type systemStates []system.State

func (u *systemStates) kind() string { return "settings" }

func (u *systemStates) takeBack(_ context.Context, in changed) error {
	return system.Restore(in.Process.Identity(), *u)
}

func (u *systemStates) overlaps(other undo, sameProcess bool) bool {
	states, ok := other.(*systemStates)
	return ok && slices.ContainsFunc(*u, func(s system.State) bool {
		return slices.ContainsFunc(*states, func(o system.State) bool {
			return (sameProcess || s.Place.Scope == system.OnCgroup) && s.Knob == o.Knob && s.Place == o.Place
		})
	})
}

func (u *systemStates) about(in changed) about {
	return about{
		told: told{
			Old:   system.Summary(*u, func(s system.State) string { return s.Old }),
			New:   system.Summary(*u, func(s system.State) string { return s.New }),
			Where: system.Where(*u),
		},
		keeps: true,
		outlives: slices.ContainsFunc(*u, func(s system.State) bool {
			return s.Place.Scope == system.OnCgroup && system.Exists(in.Process.Identity(), s.Place)
		}),
		spent: slices.ContainsFunc(*u, func(s system.State) bool { return s.Place.Scope == system.OnMemory }),
	}
}

// otherValue implements [readable].
func (u *systemStates) otherValue(in changed) (string, error) {
	return system.Overridden(in.Process.Identity(), u.last(in))
}

// last leaves out the states that a later change in force has as well.
func (u *systemStates) last(in changed) []system.State {
	return slices.DeleteFunc(slices.Clone(*u), func(s system.State) bool {
		return in.LaterHas(func(later undo, sameProcess bool) bool {
			states, ok := later.(*systemStates)
			return ok && slices.ContainsFunc(*states, func(o system.State) bool {
				return o.Knob == s.Knob && (o.Place == s.Place && sameProcess || sameFile(o.Place, s.Place))
			})
		})
	})
}

// sameFile reports whether two places are one pipe, socket or cgroup, which
// several processes may have.
func sameFile(a, b system.Place) bool {
	return a.Inode != 0 && a.Inode == b.Inode && a.Device == b.Device
}

func (o SystemOptions) request(set *attunev1.SystemSetting) (system.Request, error) {
	value, err := valueText(set.GetValue())
	if err != nil {
		return system.Request{}, fmt.Errorf("%w: %s: %w", ErrRefused, set.GetName(), err)
	}
	request := system.Request{
		Knob: set.GetName(), Value: value, On: system.Everywhere,
		InJob: o.InJob, WithoutUndo: o.WithoutUndo,
	}
	if set.On != nil {
		request.On = int(max(set.GetOn(), 0))
	}
	return request, nil
}

// valueText writes a value as knobs take it.
func valueText(value *attunev1.Value) (string, error) {
	switch v := value.GetKind().(type) {
	case *attunev1.Value_Integer:
		return strconv.FormatInt(v.Integer, 10), nil
	case *attunev1.Value_Unsigned:
		return strconv.FormatUint(v.Unsigned, 10), nil
	case *attunev1.Value_Text:
		return v.Text, nil
	case *attunev1.Value_Truth:
		if v.Truth {
			return "1", nil
		}
		return "0", nil
	}
	return "", errors.New("takes a whole number, a text or a truth value")
}

// textValue gives a knob's value in the kind that was asked in, where it can.
func textValue(text string, like *attunev1.Value) *attunev1.Value {
	n, err := strconv.ParseInt(text, 10, 64)
	_, isText := like.GetKind().(*attunev1.Value_Text)
	_, isTruth := like.GetKind().(*attunev1.Value_Truth)
	switch {
	case err != nil || isText:
		return &attunev1.Value{Kind: &attunev1.Value_Text{Text: text}}
	case isTruth && (n == 0 || n == 1):
		return &attunev1.Value{Kind: &attunev1.Value_Truth{Truth: n == 1}}
	}
	return integer(n)
}
