// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"context"
	"fmt"
	"slices"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// SetHooks tell the owner of a set what happens to it. Either may be nil.
type SetHooks struct {
	// Applied is called after each change that was made.
	Applied func(*attunev1.Change)
	// Undoing is called before a change is taken back, and for one that failed and has yet to be.
	Undoing func(changeID string)
}

// ApplySet makes changes, of one process or of several, all or nothing, and
// answers for each. All are checked before the first is made: what is refused
// then touches nobody. If one fails later, those made before it are undone,
// the latest first. A process that has ended is no failure. Changes that a [Joint]
// makes are made together.
func (a *Actuator) ApplySet(ctx context.Context, items []Item, hooks SetHooks) []*attunev1.ActionResult {
	all := a.units(items)
	for _, unit := range all {
		if result := a.check(ctx, unit); failed(result) {
			return notTried(items, result)
		}
	}
	var results []*attunev1.ActionResult
	for n, unit := range all {
		made := a.applyUnit(ctx, unit)
		if at := slices.IndexFunc(made, failed); at >= 0 {
			a.force.owe(made, hooks)
			a.rollBack(ctx, results, made[at].GetChangeId(), hooks)
			results = append(results, made...)
			for _, unit := range all[n+1:] {
				results = append(results, notTried(unit, made[at])...)
			}
			break
		}
		for i, result := range made {
			if hooks.Applied != nil && result.GetOutcome() == attunev1.Outcome_OUTCOME_APPLIED {
				hooks.Applied(unit[i].Change)
			}
		}
		results = append(results, made...)
	}
	return inOrder(items, results)
}

// units are changes that are made at one time: single ones, and joint ones.
func (a *Actuator) units(items []Item) (all [][]Item) {
	at := make(map[string]int)
	for _, item := range items {
		name, together := a.together(item.Change.GetAction())
		if unit, ok := at[name]; together && ok {
			all[unit] = append(all[unit], item)
			continue
		}
		if together {
			at[name] = len(all)
		}
		all = append(all, []Item{item})
	}
	return all
}

// inOrder puts the answers in the order of the changes.
func inOrder(items []Item, results []*attunev1.ActionResult) []*attunev1.ActionResult {
	place := make(map[string]int)
	for i, item := range items {
		place[item.Change.GetId()] = i
	}
	slices.SortStableFunc(results, func(x, y *attunev1.ActionResult) int {
		return place[x.GetChangeId()] - place[y.GetChangeId()]
	})
	return results
}

// notTried answers for changes of which none was made because one could not be,
// which has its answer already.
func notTried(items []Item, because *attunev1.ActionResult) []*attunev1.ActionResult {
	results := make([]*attunev1.ActionResult, len(items))
	for i, item := range items {
		if results[i] = because; item.Change.GetId() != because.GetChangeId() {
			results[i] = &attunev1.ActionResult{
				ChangeId: item.Change.GetId(), Outcome: attunev1.Outcome_OUTCOME_REFUSED, Untried: true,
				Reason: fmt.Sprintf("not tried: change %s could not be applied", because.GetChangeId()),
			}
		}
	}
	return results
}

// check plans changes without making them, and answers for the first.
func (a *Actuator) check(ctx context.Context, unit []Item) *attunev1.ActionResult {
	item := unit[0]
	if _, several := a.together(item.Change.GetAction()); several {
		return joint{a, unit}.check()
	}
	if item.Process == nil {
		return gone(item.Change)
	}
	item.Process.Lock()
	defer item.Process.Unlock()
	p, err := a.plan(ctx, item.Process, item.Change)
	if err == nil && p.Release != nil {
		p.Release()
	}
	result := &attunev1.ActionResult{ChangeId: item.Change.GetId()}
	answer(result, item.Process, err)
	return result
}

func (a *Actuator) applyUnit(ctx context.Context, unit []Item) []*attunev1.ActionResult {
	item := unit[0]
	if _, several := a.together(item.Change.GetAction()); several {
		return joint{a, unit}.apply(ctx)
	}
	if item.Process == nil {
		return []*attunev1.ActionResult{gone(item.Change)}
	}
	return []*attunev1.ActionResult{a.Apply(ctx, item.Process, item.Change)}
}

// owe has the owner undo what failed and could not be taken back at once.
func (f *force) owe(results []*attunev1.ActionResult, hooks SetHooks) {
	for _, result := range results {
		if hooks.Undoing != nil && failed(result) && f.find(result.GetChangeId()) != nil {
			hooks.Undoing(result.GetChangeId())
		}
	}
}

// rollBack undoes what was applied, latest first, and rewrites the answers.
func (a *Actuator) rollBack(ctx context.Context, results []*attunev1.ActionResult, because string, hooks SetHooks) {
	for _, result := range slices.Backward(results) {
		if result.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED {
			continue
		}
		if hooks.Undoing != nil {
			hooks.Undoing(result.GetChangeId())
		}
		undone := a.Undo(context.WithoutCancel(ctx), result.GetChangeId())
		result.Outcome, result.NewValue = undone.GetOutcome(), undone.GetNewValue()
		result.Reason = fmt.Sprintf("taken back: change %s could not be applied", because)
		if result.GetOutcome() == attunev1.Outcome_OUTCOME_FAILED {
			result.Reason = fmt.Sprintf("stays: change %s could not be applied, and this one not be taken back: %s", because, undone.GetReason())
		}
	}
}
