// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/attune-hpc/attune/controller/actuate/hidden"
	"github.com/attune-hpc/attune/controller/actuate/system"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// DefaultSafePointTimeout is how long an action waits for its safe point.
const DefaultSafePointTimeout = 2 * time.Second

// Process is what an action needs of the process that it acts on.
type Process interface {
	// Locker is held while something is changed or undone in the process.
	sync.Locker
	// PID in the controller's pid namespace.
	PID() int
	// Identity that the journal keeps.
	Identity() procid.Identity
	// Alive reports whether the process still runs this image.
	Alive() bool
	// Images returns the objects mapped at present.
	Images() ([]objfile.Image, error)
	// Mailbox is DMLib's in that process; nil without DMLib.
	Mailbox() Mailbox
}

// Mailbox executes calls inside a process.
type Mailbox interface {
	// Call makes a call at the next safe point that suits it. It returns the
	// result and says where it happened, e.g. "malloc hook, thread 4711". An
	// error that wraps [ring.ErrNoSafePoint] means that the call was withdrawn
	// and will not be made.
	Call(ctx context.Context, call Call) (result uint64, where string, err error)
}

// Call is one call of a function inside a process.
type Call struct {
	// Function is its address.
	Function uint64
	// Arguments are up to six integers.
	Arguments []uint64
	// Families of hooks at which the call may be made; empty: those at which
	// the thread could call the allocator.
	Families []string
	// Thread that makes the call, as the process sees its id; 0: any.
	Thread int
}

// Errors that decide between refused and failed.
var (
	// ErrRefused wraps every reason for not even trying.
	ErrRefused = errors.New("refused")
	// ErrUnknownChange means that there is nothing to undo under that id.
	ErrUnknownChange = errors.New("no such change in force")
)

// Options of an Actuator.
type Options struct {
	// Journal of this controller.
	Journal *Journal
	// Hidden finds variables without symbol; nil: they are not found.
	Hidden *hidden.Prober
	// InJob says which processes may share a cgroup that is changed; nil: none.
	InJob func(pid int) bool
	// WithoutUndo allows system settings that this user could not take back.
	WithoutUndo bool
	// Log may be nil.
	Log *slog.Logger
}

// Actuator executes tuning actions.
type Actuator struct {
	options Options
	log     *slog.Logger

	mu      sync.Mutex // guards what follows; comes after the lock of a process
	applied map[string]*appliedChange
	number  uint64 // of the latest change
	stopped bool
}

// appliedChange is a change in force. Its plan's words are guarded by the
// process' lock.
type appliedChange struct {
	process Process
	plan    *plan
	knob    string
	number  uint64 // in the order of execution
}

// plan is an action that has been checked and can be executed.
type plan struct {
	// words that will be changed, for the journal and for undoing.
	words []Word
	// settings that will be changed, for the journal.
	settings []system.State
	// outlives: what is changed may outlive the process.
	outlives bool
	// undoError says why it cannot be taken back; nil: it can.
	undoError error
	// run executes the action and says where it happened.
	run func(ctx context.Context) (where string, err error)
	// release lets go of what the plan holds until it was run; may be nil.
	release func()
	// undo takes it back where words alone cannot; nil: words can.
	undo func(ctx context.Context) error
	// old and new are the values for the answer; read gives the new one back.
	old  *attunev1.Value
	read func() (*attunev1.Value, error)
}

// New returns an Actuator that writes to the given journal.
func New(options Options) *Actuator {
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	return &Actuator{
		options: options,
		log:     options.Log.With("component", "actuate"),
		applied: make(map[string]*appliedChange),
	}
}

// Apply executes one change in the process and answers for it. It never
// panics on bad input; what cannot be done is refused with the reason.
func (a *Actuator) Apply(ctx context.Context, process Process, change *attunev1.Change) *attunev1.ActionResult {
	process.Lock()
	defer process.Unlock()
	result := &attunev1.ActionResult{ChangeId: change.GetId()}
	err := a.apply(ctx, process, change, result)
	switch {
	case err == nil:
		result.Outcome = attunev1.Outcome_OUTCOME_APPLIED
	case !process.Alive():
		result.Outcome = attunev1.Outcome_OUTCOME_GONE
		result.Reason = "process has ended"
	case errors.Is(err, ErrRefused):
		result.Outcome = attunev1.Outcome_OUTCOME_REFUSED
		result.Reason = err.Error()
	default:
		result.Outcome = attunev1.Outcome_OUTCOME_FAILED
		result.Reason = err.Error()
	}
	a.log.Info("change", "change", change.GetId(), "knob", change.GetKnob(), "pid", process.PID(),
		"outcome", result.GetOutcome(), "reason", result.GetReason(), "safe_point", result.GetSafePoint())
	return result
}

func (a *Actuator) apply(ctx context.Context, process Process, change *attunev1.Change, result *attunev1.ActionResult) error {
	if a.find(change.GetId()) != nil {
		return fmt.Errorf("%w: change %s is in force already", ErrRefused, change.GetId())
	}
	p, err := a.plan(ctx, process, change)
	if err != nil {
		return err
	}
	if p.release != nil {
		defer p.release()
	}
	result.OldValue = p.old
	if err := a.options.Journal.begin(change.GetId(), change.GetKnob(), process.Identity(), p); err != nil {
		return err // rule: nothing is changed that is not in the journal
	}
	where, err := p.run(ctx)
	if err == nil {
		result.NewValue, err = p.read()
	}
	if err != nil {
		return errors.Join(err, a.revert(context.WithoutCancel(ctx), change.GetId(), process, p))
	}
	if !a.enter(change, process, p) {
		return errors.Join(fmt.Errorf("%w: the controller stops", ErrRefused),
			a.revert(context.WithoutCancel(ctx), change.GetId(), process, p))
	}
	result.SafePoint = where
	result.AppliedUnixNano = time.Now().UnixNano()
	return nil
}

// enter puts a change in force; false if it came too late.
func (a *Actuator) enter(change *attunev1.Change, process Process, p *plan) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stopped {
		return false
	}
	a.number++
	a.applied[change.GetId()] = &appliedChange{process: process, plan: p, knob: change.GetKnob(), number: a.number}
	return true
}

// Stop makes changes that are not in force yet be taken back and refused, so
// that undoing all that [Actuator.Applied] tells of from then on leaves none.
func (a *Actuator) Stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stopped = true
}

func (a *Actuator) find(changeID string) *appliedChange {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.applied[changeID]
}

// Undo gives the original value of a change back. A change that is not in force
// is gone: its process has ended, which the asker may not have heard yet, or it
// was undone before.
func (a *Actuator) Undo(ctx context.Context, changeID string) *attunev1.ActionResult {
	result := &attunev1.ActionResult{ChangeId: changeID, Outcome: attunev1.Outcome_OUTCOME_GONE}
	change := a.find(changeID)
	if change == nil {
		result.Reason = ErrUnknownChange.Error()
		return result
	}
	change.process.Lock()
	defer change.process.Unlock()
	if a.find(changeID) != change { // undone while this call waited
		result.Reason = ErrUnknownChange.Error()
		return result
	}
	if !change.process.Alive() {
		return result // Forget closes its journal record
	}
	err := a.revert(ctx, changeID, change.process, change.plan)
	switch {
	case err == nil:
		result.Outcome = attunev1.Outcome_OUTCOME_UNDONE
		result.NewValue = change.plan.old
		result.AppliedUnixNano = time.Now().UnixNano()
	case final(err):
		result.Outcome = attunev1.Outcome_OUTCOME_FAILED
		result.Reason = err.Error()
	default: // may work the next time: stays in force and in the journal
		result.Outcome = attunev1.Outcome_OUTCOME_FAILED
		result.Reason = err.Error()
		a.log.Warn("change could not be undone", "change", changeID, "error", err)
		return result
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.applied, changeID)
	return result
}

// revert takes a plan back, wholly or partly executed, and closes its journal
// record. The caller holds the process' lock.
func (a *Actuator) revert(ctx context.Context, changeID string, process Process, p *plan) error {
	var errs []error
	if p.undo != nil {
		errs = append(errs, p.undo(ctx))
	}
	for _, w := range slices.Backward(p.words) {
		errs = append(errs, a.takeBack(changeID, process, w))
	}
	if err := errors.Join(errs...); err != nil && !final(err) {
		return fmt.Errorf("restore: %w", err)
	}
	return errors.Join(append(errs, a.options.Journal.end(changeID, "undone"))...)
}

// Forget drops the changes of a process that has ended, and takes back those
// that outlive it.
func (a *Actuator) Forget(process Process) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, change := range a.applied {
		if change.process != process {
			continue
		}
		delete(a.applied, id)
		var err error
		if change.plan.outlives {
			err = change.plan.undo(context.Background())
		}
		if err := errors.Join(err, a.options.Journal.end(id, "gone")); err != nil {
			a.log.Warn("change of an ended process", "change", id, "error", err)
		}
	}
}

// Applied returns the ids of the changes in force, the latest first, which is
// the order to undo them in.
func (a *Actuator) Applied() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.SortedFunc(maps.Keys(a.applied), func(x, y string) int {
		return cmp.Compare(a.applied[y].number, a.applied[x].number)
	})
}

func (a *Actuator) plan(ctx context.Context, process Process, change *attunev1.Change) (*plan, error) {
	switch action := change.GetAction().GetKind().(type) {
	case *attunev1.Action_SetVariable:
		return planVariable(process, change.GetSafePoint(), action.SetVariable)
	case *attunev1.Action_CallFunction:
		return planCall(process, change.GetSafePoint(), action.CallFunction)
	case *attunev1.Action_Setting:
		return a.planSetting(ctx, process, change.GetSafePoint(), action.Setting)
	case *attunev1.Action_System:
		return a.planSystem(process, change, action.System)
	default:
		return nil, fmt.Errorf("%w: change %s has no action this controller knows", ErrRefused, change.GetId())
	}
}
