// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/access"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Options of changes.
type Options struct {
	// InJob says which processes may share a cgroup that is changed; nil: none
	// but the process itself.
	InJob func(pid int) bool
	// WithoutUndo allows changes that this user could not take back.
	WithoutUndo bool
}

// Kinds change what the operating system keeps for a process.
func Kinds(o Options) actuate.Kinds {
	kind := actuate.Kind{
		Route: actuate.Route{
			Action:  "system",
			What:    "what the operating system keeps",
			Command: "attune tune PID NAME=VALUE",
			Ways:    []access.Way{access.WaySystem},
			Remark:  "See docs/reference/knobs.md.",
			Undo:    "the old value, as described there",
		},
		Plan: o.plan,
	}
	return actuate.Kinds{Actions: []actuate.Kind{kind}, Undos: []func() actuate.Undo{actuate.Empty[systemStates]}}
}

// plan prepares a change of what the operating system keeps for a
// process. What stands against it is found before anything is touched, so that
// every error is a refusal.
func (o Options) plan(_ context.Context, r *actuate.Request) (*actuate.Plan, error) {
	set := r.Change.GetAction().GetSystem()
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
	target, err := Open(r.Process.Identity())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", access.ErrRefused, err)
	}
	prepared, err := prepare(target, request)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", access.ErrRefused, err), target.Close())
	}
	states := systemStates(slices.Clone(prepared.states))
	p := &actuate.Plan{
		Undo: actuate.Undos{&states},
		Old:  textValue(prepared.Old(), set.GetValue()), UndoError: prepared.undo,
		Way: access.WaySystem, Unchanged: prepared.Unchanged(),
		Told:    actuate.Told{Where: where(prepared.states), Old: prepared.Old(), New: prepared.New()},
		Read:    func() (*attunev1.Value, error) { return textValue(prepared.New(), set.GetValue()), nil },
		Release: func() { _ = target.Close() }, // a pidfd
	}
	p.Run = func(context.Context) (access.Done, error) {
		err := prepared.Run(func(more []State) error {
			states = append(states, more...)
			return r.Begin(p)
		})
		if err != nil && prepared.knob.On == OnMemory {
			states = nil // advice was not taken, so there is nothing to take back
		}
		return access.DoneNow(err)
	}
	return p, nil
}

// systemStates is the undo of a change of what the operating system keeps.
type systemStates []State

func (u *systemStates) Kind() string { return "settings" }

// TakeBack implements [actuate.Undo]. What a later change has set is left to that change, which
// then gives back what was there before both.
func (u *systemStates) TakeBack(_ context.Context, in actuate.Changed) error {
	if err := u.passOn(in); err != nil {
		return err
	}
	return restore(in.Process.Identity(), *u, func(s State, now string) bool { return laterSet(in, s, now) })
}

func (u *systemStates) Overlaps(other actuate.Undo, sameProcess bool) bool {
	states, ok := other.(*systemStates)
	return ok && slices.ContainsFunc(*u, func(s State) bool {
		return slices.ContainsFunc(*states, func(o State) bool {
			return s.sameAs(o, sameProcess)
		})
	})
}

func (u *systemStates) About(in actuate.Changed) actuate.About {
	return actuate.About{
		Told: actuate.Told{
			Old:   summary(*u, func(s State) string { return s.Old }),
			New:   summary(*u, func(s State) string { return s.New }),
			Where: where(*u),
		},
		Keeps: true,
		Outlives: slices.ContainsFunc(*u, func(s State) bool {
			return s.Place.Scope == OnCgroup && exists(in.Process.Identity(), s.Place)
		}),
		Inherited: slices.ContainsFunc(*u, func(s State) bool {
			return s.Place.Scope != OnCgroup && s.Place.Scope != OnMemory
		}),
		Spent: slices.ContainsFunc(*u, func(s State) bool { return s.Place.Scope == OnMemory }),
	}
}

// OtherValue implements [readable].
func (u *systemStates) OtherValue(in actuate.Changed) (string, error) {
	text, lost, err := overridden(in.Process.Identity(), u.last(in))
	if lost == len(*u) {
		err = actuate.ErrPlacesGone
	}
	return text, err
}

// last leaves out the states that a later change in force has as well.
func (u *systemStates) last(in actuate.Changed) []State {
	return slices.DeleteFunc(slices.Clone(*u), func(s State) bool {
		return in.LaterHas(func(later actuate.Undo, sameProcess bool) bool {
			states, ok := later.(*systemStates)
			return ok && slices.ContainsFunc(*states, func(o State) bool {
				return s.sameAs(o, sameProcess)
			})
		})
	})
}

func (o Options) request(set *attunev1.SystemSetting) (Request, error) {
	value, err := valueText(set.GetValue())
	if err != nil {
		return Request{}, fmt.Errorf("%w: %s: %w", access.ErrRefused, set.GetName(), err)
	}
	request := Request{Knob: set.GetName(), Value: value, On: Everywhere, Options: o}
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
	return access.Integer(n)
}
