// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/controller/actuate/access"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Joint makes changes of several processes at one moment: in all of them, or in none.
type Joint interface {
	// Together names what an action changes in several processes; actions of one name
	// are made together. false: it changes one process.
	Together(action *attunev1.Action) (name string, ok bool)
	// Gather finds what can be found without a stop.
	Gather(unit []*Request) (Gathering, error)
}

// Gathering is processes that are changed together. It belongs to one goroutine.
type Gathering interface {
	// Meet brings all processes to one place and makes the change there, or looks at it
	// only, where begin is nil. begin is called when all stand, with the change that
	// they share. left: some may have been changed, and not changed back.
	Meet(ctx context.Context, begin func(*Plan) error) (left bool, err error)
	// Part is what became of the process with that index, after Meet.
	Part(index int) Part
}

// Part is a joint change in one of its processes.
type Part struct {
	Old, New *attunev1.Value
	How      access.Done
}

// together says whether an action is made in several processes at one moment.
func (a *Actuator) together(action *attunev1.Action) (name string, ok bool) {
	kind, known := a.options.Kinds.of(action)
	if !known || kind.Joint == nil {
		return "", false
	}
	return kind.Joint.Together(action)
}

// gather prepares a joint change.
func (a *Actuator) gather(unit []Item) (Gathering, error) {
	var requests []*Request
	for _, item := range unit {
		switch id := item.Change.GetId(); {
		case item.Process == nil:
			return nil, fmt.Errorf("%w: a process of those that are changed together has ended", access.ErrRefused)
		case id != "" && a.find(id) != nil:
			return nil, fmt.Errorf("%w: change %s is in force already", access.ErrRefused, id)
		}
		requests = append(requests, &Request{Process: item.Process, Change: item.Change, actuator: a})
	}
	kind, _ := a.options.Kinds.of(unit[0].Change.GetAction())
	return kind.Joint.Gather(requests)
}

// checkJoint says whether a joint change can be made, as far as that goes without a
// stop, and answers for the first process.
func (a *Actuator) checkJoint(unit []Item) *attunev1.ActionResult {
	_, err := a.gather(unit)
	result := &attunev1.ActionResult{ChangeId: unit[0].Change.GetId()}
	answerJoint(result, false, err)
	return result
}

// answerJoint says what an error means. A process that has ended is a failure: the
// others must not be changed without it.
func answerJoint(result *attunev1.ActionResult, left bool, err error) {
	switch {
	case err == nil:
		result.Outcome = attunev1.Outcome_OUTCOME_APPLIED
		return
	case left:
		result.Outcome = attunev1.Outcome_OUTCOME_FAILED
	default:
		result.Outcome = attunev1.Outcome_OUTCOME_REFUSED
	}
	result.Reason = err.Error()
}

// applyJoint makes a change in all processes. The answers are all alike: either it
// was made everywhere, or nowhere. Undoing any of the changes undoes all of them.
func (a *Actuator) applyJoint(ctx context.Context, unit []Item) []*attunev1.ActionResult {
	unlock := lockAll(unit)
	defer unlock()
	g, err := a.gather(unit)
	left := false
	if err == nil {
		left, err = a.makeJoint(ctx, unit, g)
	}
	results := make([]*attunev1.ActionResult, len(unit))
	for i, item := range unit {
		results[i] = &attunev1.ActionResult{ChangeId: item.Change.GetId()}
		if answerJoint(results[i], left, err); err == nil {
			part := g.Part(i)
			results[i].OldValue, results[i].NewValue = part.Old, part.New
			results[i].SafePoint, results[i].Way = part.How.Where, string(part.How.Way)
			results[i].AppliedUnixNano, results[i].StoppedNanos = time.Now().UnixNano(), part.How.Stopped.Nanoseconds()
		}
	}
	a.log.Info("joint change", "knob", unit[0].Change.GetKnob(), "processes", len(unit),
		"outcome", results[0].GetOutcome(), "reason", results[0].GetReason())
	return results
}

// makeJoint makes the change and puts it in force. What may be left in some processes
// stays in the journal.
func (a *Actuator) makeJoint(ctx context.Context, unit []Item, g Gathering) (left bool, err error) {
	var begun []string
	var shared *Plan
	left, err = g.Meet(ctx, func(p *Plan) error {
		shared = p
		for _, item := range unit { // rule: nothing is changed that is not in the journal
			if err := a.options.Journal.begin(item.Change.GetId(), item.Change.GetKnob(), item.Process.Identity(), p); err != nil {
				return err
			}
			begun = append(begun, item.Change.GetId())
		}
		return nil
	})
	for _, item := range unit {
		if err == nil && !a.enter(item.Change, item.Process, shared) {
			back := shared.Undo.takeBack(context.WithoutCancel(ctx), Changed{item.Process, a, item.Change.GetId()})
			left, err = back != nil, also(fmt.Errorf("%w: the controller stops", access.ErrRefused), back)
		}
	}
	if err == nil || left {
		return left, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, id := range begun {
		delete(a.applied, id)
		err = errors.Join(err, a.options.Journal.end(id, "undone"))
	}
	return false, err
}

// PreviewJoint says what a joint change would do, one for each process. They stand
// still together for a moment, and nothing is changed. Errors as those that ApplySet
// answers with.
func (a *Actuator) PreviewJoint(ctx context.Context, unit []Item) ([]Preview, error) {
	unlock := lockAll(unit)
	defer unlock()
	g, err := a.gather(unit)
	if err != nil {
		return nil, err
	}
	if _, err := g.Meet(ctx, nil); err != nil {
		return nil, err
	}
	previews := make([]Preview, len(unit))
	for i := range unit {
		part := g.Part(i)
		previews[i] = Preview{
			Old: attunev1.ValueText(part.Old), New: attunev1.ValueText(part.New),
			Where: part.How.Where, Way: part.How.Way, Unchanged: proto.Equal(part.Old, part.New),
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
