// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/controller/policy"
	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Options of an Actuator.
type Options struct {
	// Journal of this controller.
	Journal *Journal
	// Origin tells the actions at functions of one journal from those of
	// another in the same process.
	Origin string
	// Kinds of actions that are known.
	Kinds Kinds
	// Policy says what is allowed, and is asked for at each change, since it may
	// be another one by then; nil: a user's own processes.
	Policy func() *policy.Policy
	// Asker is who asks; nil: the controller's own user, whoever that is.
	Asker *attunev1.Principal
	// Member returns the process of an identity, of those that are changed by this Actuator
	// alone; nil: it is none of them. An error is why it must be left alone. May be nil.
	Member func(procid.Identity) (access.Process, error)
	// Log may be nil.
	Log *slog.Logger
}

// Actuator executes tuning actions.
type Actuator struct {
	options Options
	log     *slog.Logger
	force   *force
	endings *endings
}

// New returns an Actuator that writes to the given journal.
func New(options Options) *Actuator {
	options.Log = cmp.Or(options.Log, slog.New(slog.DiscardHandler))
	inForce := &force{journal: options.Journal, applied: make(map[string]*appliedChange)}
	return &Actuator{
		options: options,
		log:     options.Log.With("component", "actuate"),
		force:   inForce,
		endings: &endings{force: inForce, forks: forks{member: options.Member}},
	}
}

// plan checks an action and reads the old value. Nothing is touched.
func (a *Actuator) plan(ctx context.Context, process access.Process, change *attunev1.Change) (*Plan, error) {
	kind, known := a.options.Kinds.of(change.GetAction())
	if !known {
		return nil, fmt.Errorf("%w: change %s has no action this controller knows", access.ErrRefused, change.GetId())
	}
	return kind.Plan(ctx, a.request(process, change))
}

// request is a change that is asked for in a process.
func (a *Actuator) request(process access.Process, change *attunev1.Change) *Request {
	o := a.options
	return &Request{
		Process: process, Change: change,
		journal: o.Journal, undos: o.Kinds.Undos, origin: o.Origin, policy: o.Policy, asker: o.Asker, log: a.log,
	}
}

// Apply executes one change in the process and answers for it. It never
// panics on bad input; what cannot be done is refused with the reason.
func (a *Actuator) Apply(ctx context.Context, process access.Process, change *attunev1.Change) *attunev1.ActionResult {
	process.Lock()
	defer process.Unlock()
	result := &attunev1.ActionResult{ChangeId: change.GetId()}
	err := a.apply(ctx, process, change, result)
	answer(result, process, err)
	a.log.Info("change", "change", change.GetId(), "knob", change.GetKnob(), "pid", process.PID(),
		"outcome", result.GetOutcome(), "reason", result.GetReason(), "safe_point", result.GetSafePoint())
	return result
}

func (a *Actuator) apply(ctx context.Context, process access.Process, change *attunev1.Change, result *attunev1.ActionResult) error {
	if a.force.find(change.GetId()) != nil {
		return fmt.Errorf("%w: change %s is in force already", access.ErrRefused, change.GetId())
	}
	p, err := a.plan(ctx, process, change)
	if err != nil {
		return err
	}
	if p.Release != nil {
		defer p.Release()
	}
	result.OldValue = p.Old
	if p.Prepare != nil {
		if err := p.Prepare(ctx); err != nil {
			return err
		}
	}
	if err := a.request(process, change).Begin(p); err != nil {
		return also(err, p.unprepare(ctx)) // rule: nothing is changed that is not in the journal
	}
	how, err := p.Run(ctx)
	if err == nil {
		result.NewValue, err = p.Read()
	}
	if err == nil {
		err = still(process)
	}
	if err != nil {
		return also(err, a.endings.takeBackFailed(ctx, process, change, p))
	}
	if !a.force.enter(change, process, p, time.Now()) {
		return also(fmt.Errorf("%w: the controller stops", access.ErrRefused), a.endings.takeBackFailed(ctx, process, change, p))
	}
	result.AppliedUnixNano = time.Now().UnixNano()
	result.SafePoint, result.StoppedNanos = how.Where, how.Stopped.Nanoseconds()
	result.Way = string(cmp.Or(how.Way, p.Way))
	result.Partial = strings.Join(slices.DeleteFunc([]string{p.Partial, how.Partial}, isEmpty), "; ")
	return nil
}

func isEmpty(text string) bool { return text == "" }

// Stop makes changes that are not in force yet be taken back and refused, so
// that undoing all that [Actuator.Applied] tells of from then on leaves none.
func (a *Actuator) Stop() { a.force.stop() }

// Undo gives the original value of a change back. A change that is not in force
// is gone: its process has ended, which the asker may not have heard yet, or it
// was undone before.
func (a *Actuator) Undo(ctx context.Context, changeID string) *attunev1.ActionResult {
	result := &attunev1.ActionResult{ChangeId: changeID, Outcome: attunev1.Outcome_OUTCOME_GONE}
	change := a.force.find(changeID)
	if change == nil {
		result.Reason = ErrUnknownChange.Error()
		return result
	}
	change.tending.end()
	if ended := a.undo(ctx, changeID, change, result); ended {
		a.Forget(change.process)
		if a.force.find(changeID) != nil {
			result.Outcome = attunev1.Outcome_OUTCOME_FAILED
			result.Reason = "the process has ended, and what is left of the change could not be taken back yet"
		}
	}
	return result
}

// undo is Undo of a change that is in force, and says in the result what became of it; ended:
// the process had ended before.
func (a *Actuator) undo(ctx context.Context, changeID string, change *appliedChange, result *attunev1.ActionResult) (ended bool) {
	change.ending.Lock()
	defer change.ending.Unlock()
	if a.force.find(changeID) != change { // undone while this call waited
		result.Reason = ErrUnknownChange.Error()
		return false
	}
	alive, err := a.endings.takeBack(ctx, change)
	switch {
	case !alive:
		return true
	case err != nil && dying(change.process):
		return false
	case err == nil:
		result.Outcome = attunev1.Outcome_OUTCOME_UNDONE
		result.NewValue = a.force.oldOf(change)
		result.AppliedUnixNano = time.Now().UnixNano()
	case final(err):
		result.Outcome = attunev1.Outcome_OUTCOME_FAILED
		result.Reason = err.Error()
	default: // may work the next time: stays in force and in the journal
		result.Outcome = attunev1.Outcome_OUTCOME_FAILED
		result.Reason = err.Error()
		a.log.Warn("change could not be undone", "change", changeID, "error", err)
		change.tending.start()
	}
	return false
}

// Forget drops the changes of a process that has ended or executes another program, the latest
// first, and takes back what is left of them: what outlives the process, and what another
// image of it or its forks have. What could not be taken back for the time being stays in force.
// The caller does not hold the process' lock, for which a tending may wait that ends here.
func (a *Actuator) Forget(process access.Process) {
	for _, id := range a.force.of(process) {
		if err := a.endings.release(id); err != nil {
			a.log.Warn("change of an ended process", "change", id, "error", err)
		}
	}
}
