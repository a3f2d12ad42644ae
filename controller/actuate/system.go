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

// systemKind changes what the operating system keeps for a process.
func systemKind() actionKind {
	return actionKind{
		Route{
			"system", "what the operating system keeps", "attune tune NAME=VALUE", []Way{WaySystem},
			"See docs/reference/knobs.md.", "the old value, as described there",
		},
		func(_ context.Context, a *Actuator, process Process, change *attunev1.Change) (*plan, error) {
			return a.planSystem(process, change, change.GetAction().GetSystem())
		},
	}
}

// planSystem prepares a change of what the operating system keeps for a
// process. What stands against it is found before anything is touched, so that
// every error is a refusal.
func (a *Actuator) planSystem(process Process, change *attunev1.Change, set *attunev1.SystemSetting) (*plan, error) {
	if kind := change.GetSafePoint().GetKind(); kind != attunev1.SafePoint_KIND_UNSPECIFIED && kind != attunev1.SafePoint_KIND_NOW {
		return nil, fmt.Errorf("%w: %s is set at safe point \"now\" only", ErrRefused, set.GetName())
	}
	request, err := a.systemRequest(set)
	if err != nil {
		return nil, err
	}
	if err := a.allowed(process, "system", []*attunev1.Value{set.GetValue()}, set.GetName()); err != nil {
		return nil, err
	}
	target, err := system.Open(process.Identity())
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
			return a.options.Journal.begin(change.GetId(), change.GetKnob(), process.Identity(), p)
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
	return system.Restore(in.process.Identity(), *u)
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
			return s.Place.Scope == system.OnCgroup && system.Exists(in.process.Identity(), s.Place)
		}),
		spent: slices.ContainsFunc(*u, func(s system.State) bool { return s.Place.Scope == system.OnMemory }),
	}
}

// otherValue implements [readable].
func (u *systemStates) otherValue(in changed) (string, error) {
	return system.Overridden(in.process.Identity(), in.actuator.lastStates(in, *u))
}

// lastStates leaves out the settings that a later change in force has as well.
func (a *Actuator) lastStates(in changed, states systemStates) []system.State {
	a.mu.Lock()
	defer a.mu.Unlock()
	this := a.applied[in.id]
	return slices.DeleteFunc(slices.Clone(states), func(s system.State) bool {
		for _, later := range a.applied {
			if this != nil && later.number > this.number && later.plan.setsAgain(s, later.process == in.process) {
				return true
			}
		}
		return false
	})
}

// setsAgain says whether a plan sets what a state is of; sameProcess, whether it is
// a plan for the same process.
func (p *plan) setsAgain(s system.State, sameProcess bool) bool {
	return slices.ContainsFunc(p.undo, func(part undo) bool {
		states, ok := part.(*systemStates)
		return ok && slices.ContainsFunc(*states, func(o system.State) bool {
			return o.Knob == s.Knob && (o.Place == s.Place && sameProcess || sameFile(o.Place, s.Place))
		})
	})
}

// sameFile reports whether two places are one pipe, socket or cgroup, which
// several processes may have.
func sameFile(a, b system.Place) bool {
	return a.Inode != 0 && a.Inode == b.Inode && a.Device == b.Device
}

func (a *Actuator) systemRequest(set *attunev1.SystemSetting) (system.Request, error) {
	value, err := valueText(set.GetValue())
	if err != nil {
		return system.Request{}, fmt.Errorf("%w: %s: %w", ErrRefused, set.GetName(), err)
	}
	request := system.Request{
		Knob: set.GetName(), Value: value, On: system.Everywhere,
		InJob: a.options.InJob, WithoutUndo: a.options.WithoutUndo,
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
