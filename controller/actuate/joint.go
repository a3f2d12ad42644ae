// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/attune-hpc/attune/controller/actuate/access"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// together says whether an action is made in several processes at one moment.
func (a *Actuator) together(action *attunev1.Action) (name string, ok bool) {
	kind, known := a.options.Kinds.of(action)
	if !known || kind.Joint == nil {
		return "", false
	}
	return kind.Joint.Together(action)
}

// joint is a change that is made in several processes at one moment.
type joint struct {
	actuator *Actuator
	unit     []Item
}

// gather prepares it.
func (j joint) gather() (Gathering, error) {
	var requests []*Request
	for _, item := range j.unit {
		switch id := item.Change.GetId(); {
		case item.Process == nil:
			return nil, fmt.Errorf("%w: a process of those that are changed together has ended", access.ErrRefused)
		case id != "" && j.actuator.force.find(id) != nil:
			return nil, fmt.Errorf("%w: change %s is in force already", access.ErrRefused, id)
		}
		requests = append(requests, j.actuator.request(item.Process, item.Change))
	}
	kind, _ := j.actuator.options.Kinds.of(j.unit[0].Change.GetAction())
	return kind.Joint.Gather(requests)
}

// check says whether it can be made, as far as that goes without a stop, and answers
// for the first process.
func (j joint) check() *attunev1.ActionResult {
	_, err := j.gather()
	result := &attunev1.ActionResult{ChangeId: j.unit[0].Change.GetId()}
	answerJoint(result, false, err)
	return result
}

// apply makes the change in all processes. The answers are all alike: either it
// was made everywhere, or nowhere. Undoing any of the changes undoes all of them.
func (j joint) apply(ctx context.Context) []*attunev1.ActionResult {
	unlock := lockAll(j.unit)
	defer unlock()
	g, err := j.gather()
	left := false
	if err == nil {
		left, err = j.makeAll(ctx, g)
	}
	results := make([]*attunev1.ActionResult, len(j.unit))
	for i, item := range j.unit {
		results[i] = &attunev1.ActionResult{ChangeId: item.Change.GetId()}
		if answerJoint(results[i], left, err); err == nil {
			part := g.Part(i)
			results[i].OldValue, results[i].NewValue = part.Old, part.New
			results[i].SafePoint, results[i].Way = part.How.Where, string(part.How.Way)
			results[i].AppliedUnixNano, results[i].StoppedNanos = time.Now().UnixNano(), part.How.Stopped.Nanoseconds()
		}
	}
	j.actuator.log.Info("joint change", "knob", j.unit[0].Change.GetKnob(), "processes", len(j.unit),
		"outcome", results[0].GetOutcome(), "reason", results[0].GetReason())
	return results
}

// makeAll makes the change and puts it in force: also where it failed, if something of it may
// be left in some processes.
func (j joint) makeAll(ctx context.Context, g Gathering) (left bool, err error) {
	var begun []string
	var shared *Plan
	left, err = g.Meet(ctx, func(p *Plan) error {
		shared = p
		for _, item := range j.unit { // rule: nothing is changed that is not in the journal
			if err := j.actuator.options.Journal.begin(item.Change.GetId(), item.Change.GetKnob(), item.Process.Identity(), p); err != nil {
				return err
			}
			begun = append(begun, item.Change.GetId())
		}
		return nil
	})
	for _, item := range j.unit {
		if err == nil && !j.actuator.force.enter(item.Change, item.Process, shared, time.Now()) {
			back := shared.Undo.takeBack(context.WithoutCancel(ctx), Changed{Process: item.Process, others: j.actuator.force, id: item.Change.GetId()})
			left, err = back != nil, also(fmt.Errorf("%w: the controller stops", access.ErrRefused), back)
		}
	}
	if left {
		for i, id := range begun {
			if j.actuator.force.find(id) == nil { // so that it is undone later
				j.actuator.force.enter(j.unit[i].Change, j.unit[i].Process, shared, time.Now())
			}
		}
	}
	if err == nil || left {
		return left, err
	}
	for _, id := range begun {
		err = errors.Join(err, j.actuator.force.drop(id, "undone"))
	}
	return false, err
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
