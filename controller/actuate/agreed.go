// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Ranks is an MPI control variable that was changed in ranks of a job together, for
// the journal: it is given back in all of them together.
type Ranks struct {
	// Setting by its name, and what it was and was given.
	Setting string `json:"setting"`
	Old     int64  `json:"old"`
	New     int64  `json:"new"`
	// Members are the ranks.
	Members []procid.Identity `json:"members"`

	mu     sync.Mutex // guards what follows
	undone bool
}

func (*Ranks) kind() string { return "ranks" }

// takeBack gives the old value back in all ranks together, once.
func (r *Ranks) takeBack(ctx context.Context, _ changed) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.undone {
		return nil
	}
	err := restoreRanks(ctx, r)
	r.undone = err == nil
	return err
}

func (r *Ranks) overlaps(other undo, sameProcess bool) bool {
	o, ok := other.(*Ranks)
	return ok && sameProcess && r.Setting == o.Setting
}

func (*Ranks) about(changed) about { return about{keeps: true} }

// sameAs implements [common].
func (r *Ranks) sameAs(other undo) bool {
	o, ok := other.(*Ranks)
	return ok && r.Setting == o.Setting && r.Old == o.Old && r.New == o.New && slices.Equal(r.Members, o.Members)
}

// agreed says whether changes are to be made at the same call in all processes.
func agreed(unit []Item) bool {
	_, ok := isMPI(unit[0].Change.GetAction().GetSetting().GetName())
	return ok
}

// checkRanks says whether changes of a variable can be made, as far as that goes
// without a stop, and answers for the first.
func (a *Actuator) checkRanks(unit []Item) *attunev1.ActionResult {
	g, err := a.ranksOf(unit)
	g.close()
	result := &attunev1.ActionResult{ChangeId: unit[0].Change.GetId()}
	answerRanks(result, err)
	return result
}

// answerRanks says what an error means. A process that has ended is a failure: the
// others of its job must not be changed without it.
func answerRanks(result *attunev1.ActionResult, err error) {
	switch {
	case err == nil:
		result.Outcome = attunev1.Outcome_OUTCOME_APPLIED
		return
	case errors.Is(err, errDiffer):
		result.Outcome = attunev1.Outcome_OUTCOME_FAILED
	default:
		result.Outcome = attunev1.Outcome_OUTCOME_REFUSED
	}
	result.Reason = err.Error()
}

// ranksOf prepares a change of the variable. The caller closes it, after an error as
// well.
func (a *Actuator) ranksOf(unit []Item) (*ranks, error) {
	first := unit[0].Change
	name, _ := isMPI(first.GetAction().GetSetting().GetName())
	value := attunev1.ValueText(first.GetAction().GetSetting().GetValue())
	var processes []Process
	for _, item := range unit {
		setting := item.Change.GetAction().GetSetting()
		switch {
		case item.Process == nil:
			return &ranks{}, fmt.Errorf("%w: a rank has ended", ErrRefused)
		case item.Change.GetId() != "" && a.find(item.Change.GetId()) != nil:
			return &ranks{}, fmt.Errorf("%w: change %s is in force already", ErrRefused, item.Change.GetId())
		case attunev1.ValueText(setting.GetValue()) != value:
			return &ranks{}, fmt.Errorf("%w: %s is given different values at one time", ErrRefused, name)
		case item.Change.GetSafePoint().GetKind() == attunev1.SafePoint_KIND_NOW:
			return &ranks{}, fmt.Errorf("%w: %s is changed at the same call in all ranks, not now", ErrRefused, name)
		}
		if err := a.allowed(item.Process, "setting", []*attunev1.Value{setting.GetValue()}, setting.GetName()); err != nil {
			return &ranks{}, err
		}
		processes = append(processes, item.Process)
	}
	g, err := newRanks(processes, name)
	g.text, g.patience = value, meetingPatience
	if timeout := first.GetSafePoint().GetTimeoutNanos(); timeout > 0 {
		g.patience = time.Duration(timeout)
	}
	return g, err
}

// applyRanks gives the variable a value in all ranks, before one call. The answers
// are all alike: either it was done everywhere, or nowhere. Undoing any of the
// changes undoes all of them.
func (a *Actuator) applyRanks(ctx context.Context, unit []Item) []*attunev1.ActionResult {
	unlock := lockAll(unit)
	defer unlock()
	g, err := a.ranksOf(unit)
	defer g.close()
	if err == nil {
		err = a.switchRanks(ctx, unit, g)
	}
	results := make([]*attunev1.ActionResult, len(unit))
	for i, item := range unit {
		results[i] = &attunev1.ActionResult{ChangeId: item.Change.GetId()}
		if answerRanks(results[i], err); err == nil {
			results[i].OldValue, results[i].NewValue = integer(g.members[i].facts.old), integer(g.value)
			results[i].SafePoint, results[i].Way = g.where(), string(WayStopped)
			results[i].AppliedUnixNano, results[i].StoppedNanos = time.Now().UnixNano(), g.members[i].result.Stopped.Nanoseconds()
		}
	}
	a.log.Info("change of ranks", "variable", g.name, "ranks", len(unit), "outcome", results[0].GetOutcome(), "reason", results[0].GetReason())
	return results
}

// switchRanks makes the change and puts it in force. What may have been left in
// some ranks stays in the journal.
func (a *Actuator) switchRanks(ctx context.Context, unit []Item, g *ranks) error {
	var begun []string
	var p *plan
	g.begin = func() error {
		p = g.plan()
		for _, item := range unit { // rule: nothing is changed that is not in the journal
			if err := a.options.Journal.begin(item.Change.GetId(), item.Change.GetKnob(), item.Process.Identity(), p); err != nil {
				return err
			}
			begun = append(begun, item.Change.GetId())
		}
		return nil
	}
	err := g.meet(ctx)
	if err == nil {
		for _, item := range unit {
			if !a.enter(item.Change, item.Process, p) {
				err = errors.Join(fmt.Errorf("%w: the controller stops", ErrRefused), p.undo.takeBack(context.WithoutCancel(ctx), changed{item.Process, a, item.Change.GetId()}))
			}
		}
	}
	if err == nil || errors.Is(err, errDiffer) {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, id := range begun {
		delete(a.applied, id)
		err = errors.Join(err, a.options.Journal.end(id, "undone"))
	}
	return err
}

// plan is the change that all ranks have in common, for the journal and for undoing.
func (g *ranks) plan() *plan {
	old := g.members[0].facts.old
	r := &Ranks{Setting: g.name, Old: old, New: g.value}
	for _, m := range g.members {
		r.Members = append(r.Members, m.process.Identity())
	}
	return &plan{
		undo: undos{r}, old: integer(old), way: WayStopped,
		told: told{Where: g.where(), Old: attunev1.ValueText(integer(old)), New: attunev1.ValueText(integer(g.value))},
	}
}

// restoreRanks gives the old value back in all ranks together. The job has to be
// whole: without one rank the others come to no collective operation any more.
func restoreRanks(ctx context.Context, r *Ranks) error {
	var processes []Process
	for _, identity := range r.Members {
		if p := (&journaled{identity: identity}); p.Alive() {
			processes = append(processes, p)
		}
	}
	switch {
	case len(processes) == 0:
		return nil
	case len(processes) < len(r.Members):
		return fmt.Errorf("%d of %d ranks have ended: the others meet at no call any more, and keep the value until they end", len(r.Members)-len(processes), len(r.Members))
	}
	g, err := newRanks(processes, r.Setting)
	defer g.close()
	if err != nil {
		return err
	}
	g.undo, g.patience, g.begin = r, meetingPatience, func() error { return nil }
	return g.meet(ctx)
}

// PreviewRanks says what changes of an MPI control variable, one for each rank,
// would do. The ranks stand still together for a moment, and nothing is changed.
// Errors as those that ApplySet answers with.
func (a *Actuator) PreviewRanks(ctx context.Context, unit []Item) ([]Preview, error) {
	unlock := lockAll(unit)
	defer unlock()
	g, err := a.ranksOf(unit)
	defer g.close()
	if err == nil {
		err = g.meet(ctx)
	}
	if err != nil {
		return nil, err
	}
	previews := make([]Preview, len(unit))
	for i, m := range g.members {
		previews[i] = Preview{
			Old: attunev1.ValueText(integer(m.facts.old)), New: attunev1.ValueText(integer(g.value)),
			Where: g.where(), Way: WayStopped, Unchanged: m.facts.old == g.value,
		}
	}
	return previews, nil
}

// lockAll takes the locks of all processes, each once, in the order of their ids.
func lockAll(items []Item) (unlock func()) {
	sorted := slices.DeleteFunc(slices.Clone(items), func(i Item) bool { return i.Process == nil })
	slices.SortFunc(sorted, func(x, y Item) int { return x.Process.PID() - y.Process.PID() })
	sorted = slices.CompactFunc(sorted, func(x, y Item) bool { return x.Process == y.Process })
	for _, i := range sorted {
		i.Process.Lock()
	}
	return func() {
		for _, i := range sorted {
			i.Process.Unlock()
		}
	}
}
