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
	p := &plan{
		settings: prepared.States(), outlives: prepared.Knob().On == system.OnCgroup,
		old: textValue(prepared.Old(), set.GetValue()), undoError: prepared.UndoError(),
		way: WaySystem, unchanged: prepared.Unchanged(),
		told:    told{Where: system.Where(prepared.States()), Old: prepared.Old(), New: prepared.New()},
		read:    func() (*attunev1.Value, error) { return textValue(prepared.New(), set.GetValue()), nil },
		release: func() { _ = target.Close() }, // a pidfd
	}
	advised := false
	p.run = func(context.Context) (done, error) {
		err := prepared.Run(func(more []system.State) error {
			p.settings = append(p.settings, more...)
			return a.options.Journal.more(change.GetId(), more)
		})
		advised = err == nil && prepared.Knob().On == system.OnMemory
		return now(err)
	}
	p.undo = func(context.Context) error {
		if prepared.Knob().On == system.OnMemory && !advised {
			return nil // it was not taken, so there is nothing to take back
		}
		return system.Restore(process.Identity(), p.settings)
	}
	return p, nil
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

// overlaps says whether two changes are of the same thing.
func overlaps(a, b record) bool {
	words := slices.ContainsFunc(a.Words, func(w Word) bool {
		return slices.ContainsFunc(b.Words, func(o Word) bool { return w.Address == o.Address })
	})
	named := a.Named != nil && b.Named != nil && a.Named.Setting == b.Named.Setting
	stream := a.Stream != nil && b.Stream != nil && a.Stream.Address == b.Stream.Address
	ranks := a.Ranks != nil && b.Ranks != nil && a.Ranks.Setting == b.Ranks.Setting
	if a.Process.SameProcess(*b.Process) && (words || named || stream || ranks) {
		return true
	}
	return slices.ContainsFunc(a.Settings, func(s system.State) bool {
		return slices.ContainsFunc(b.Settings, func(o system.State) bool {
			sameProcess := s.Place.Scope == system.OnCgroup || a.Process.SameProcess(*b.Process)
			return sameProcess && s.Knob == o.Knob && s.Place == o.Place
		})
	})
}
