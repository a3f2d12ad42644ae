// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Item is one change of a set.
type Item struct {
	// Process that it is made in; nil: it has ended.
	Process Process
	Change  *attunev1.Change
}

// SetHooks tell the owner of a set what happens to it. Either may be nil.
type SetHooks struct {
	// Applied is called after each change that was made.
	Applied func(*attunev1.Change)
	// Undoing is called before a change is taken back.
	Undoing func(changeID string)
}

// ApplySet makes changes, of one process or of several, all or nothing, and
// answers for each. All are checked before the first is made: what is refused
// then touches nobody. If one fails later, those made before it are undone,
// the latest first. A process that has ended is no failure.
func (a *Actuator) ApplySet(ctx context.Context, items []Item, hooks SetHooks) []*attunev1.ActionResult {
	for i, item := range items {
		if result := a.check(ctx, item); failed(result) {
			return notTried(items, i, result)
		}
	}
	results := make([]*attunev1.ActionResult, 0, len(items))
	for i, item := range items {
		result := a.applyItem(ctx, item)
		if failed(result) {
			a.rollBack(ctx, results, item.Change.GetId(), hooks)
			return append(results, notTried(items[i:], 0, result)...)
		}
		if hooks.Applied != nil && result.GetOutcome() == attunev1.Outcome_OUTCOME_APPLIED {
			hooks.Applied(item.Change)
		}
		results = append(results, result)
	}
	return results
}

func failed(result *attunev1.ActionResult) bool {
	return result.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED && result.GetOutcome() != attunev1.Outcome_OUTCOME_GONE
}

// notTried answers for a set of which one change could not be made, and none
// was.
func notTried(items []Item, at int, result *attunev1.ActionResult) []*attunev1.ActionResult {
	results := make([]*attunev1.ActionResult, len(items))
	for i, item := range items {
		results[i] = &attunev1.ActionResult{
			ChangeId: item.Change.GetId(), Outcome: attunev1.Outcome_OUTCOME_REFUSED, Untried: true,
			Reason: fmt.Sprintf("not tried: change %s could not be applied", result.GetChangeId()),
		}
	}
	results[at] = result
	return results
}

// check plans a change without making it.
func (a *Actuator) check(ctx context.Context, item Item) *attunev1.ActionResult {
	if item.Process == nil {
		return gone(item.Change)
	}
	item.Process.Lock()
	defer item.Process.Unlock()
	p, err := a.plan(ctx, item.Process, item.Change)
	if err == nil && p.release != nil {
		p.release()
	}
	result := &attunev1.ActionResult{ChangeId: item.Change.GetId()}
	answer(result, item.Process, err)
	return result
}

func (a *Actuator) applyItem(ctx context.Context, item Item) *attunev1.ActionResult {
	if item.Process == nil {
		return gone(item.Change)
	}
	return a.Apply(ctx, item.Process, item.Change)
}

func gone(change *attunev1.Change) *attunev1.ActionResult {
	return &attunev1.ActionResult{
		ChangeId: change.GetId(), Outcome: attunev1.Outcome_OUTCOME_GONE, Reason: "process has ended",
	}
}

// answer says what an error means.
func answer(result *attunev1.ActionResult, process Process, err error) {
	switch {
	case err == nil:
		result.Outcome = attunev1.Outcome_OUTCOME_APPLIED
		return
	case !process.Alive(), errors.Is(err, procid.ErrGone) && !errors.Is(err, ErrRefused):
		result.Outcome = attunev1.Outcome_OUTCOME_GONE
		result.Reason = "process has ended"
		return
	case errors.Is(err, ErrRefused):
		result.Outcome = attunev1.Outcome_OUTCOME_REFUSED
	default:
		result.Outcome = attunev1.Outcome_OUTCOME_FAILED
	}
	result.Reason = err.Error()
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
