// SPDX-License-Identifier: Apache-2.0

package change

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/controller/actuate/hidden"
	"github.com/attune-hpc/attune/controller/actuate/kinds"
	"github.com/attune-hpc/attune/controller/actuate/system"
	"github.com/attune-hpc/attune/controller/member"
	"github.com/attune-hpc/attune/controller/policy"
	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// needTimeout bounds how long changes wait for DMLib.
const needTimeout = 5 * time.Second

// Options of Changes. All are needed but for those that say otherwise.
type Options struct {
	// Members are where changes are made.
	Members *member.Set
	// StateDir holds the undo journals of this user's controllers.
	StateDir string
	// Origin tells this controller from all others.
	Origin string
	// Hidden finds variables without symbol; may be nil.
	Hidden *hidden.Prober
	// Policy says which tuning actions are allowed; nil: see [actuate.Options].
	Policy func() *policy.Policy
	// Owner is who asks, for the policy; may be nil.
	Owner *attunev1.Principal
	// Lease is how long a change outlives a silent Analyzer that does not say.
	Lease time.Duration
	// Untouched says why nothing may be changed in processes that execute a program, by its
	// path; empty: changes are up to the policy.
	Untouched func(executable string) string
	// Foreign is why a process must be left alone; nil: it need not.
	Foreign func(pid int) error
	// BringIn has DMLib in a process if that is possible, before ctx ends.
	BringIn func(ctx context.Context, m *member.Member)
	// TakesOver says that an earlier controller may have left changes for this one.
	TakesOver bool
	// Answered is told of what became of each change.
	Answered func(*attunev1.ActionResult)
	// Answer takes a message to the Analyzer.
	Answer func(*attunev1.ManageRequest)
	// Go runs a function in a goroutine that the controller waits for when it stops.
	Go func(run func())
	// Context of what is applied.
	Context context.Context
	Log     *slog.Logger
}

// Changes are the tuning actions of one controller.
type Changes struct {
	options  Options
	kinds    actuate.Kinds
	journal  *actuate.Journal
	actuator *actuate.Actuator
	leases   *leases
	opened   time.Time
}

// New opens the journal. The caller calls Close.
func New(o Options) (*Changes, error) {
	journal, err := actuate.OpenJournal(o.StateDir, strconv.Itoa(os.Getpid()))
	if err != nil {
		return nil, err
	}
	known := kinds.All(kinds.Options{Hidden: o.Hidden, System: system.Options{InJob: o.Members.Has}})
	c := &Changes{options: o, kinds: known, journal: journal, leases: newLeases(o.Lease), opened: time.Now(), actuator: actuate.New(actuate.Options{
		Kinds: known, Journal: journal, Origin: o.Origin, Policy: o.Policy, Asker: o.Owner, Log: o.Log, Member: o.memberOf,
	})}
	o.Members.OnLeave(func(m *member.Member) { c.actuator.Forget(m) })
	return c, nil
}

// memberOf returns a process as the member that it is, whose memory says whether it must be
// left alone; nil: it is none, or not yet.
func (o *Options) memberOf(process procid.Identity) (access.Process, error) {
	if m := o.Members.OfPID(process.PID); m != nil && m.Identity().SameImage(process) {
		return m, nil
	}
	return nil, o.Foreign(process.PID)
}

// Close closes the journal.
func (c *Changes) Close() error { return c.journal.Close() }

// InForce lists the changes that are in force, the latest first.
func (c *Changes) InForce() []string { return c.actuator.Applied() }

// List tells of the changes that are in force, the earliest first.
func (c *Changes) List() []actuate.InForce { return c.actuator.InForce() }

// Connection numbers the present connection to the Analyzer.
func (c *Changes) Connection() uint64 { return c.leases.connection() }

// Orphan notes that the connection was lost: what is in force is renewed only when it
// is named.
func (c *Changes) Orphan() { c.leases.orphan() }

// Renew takes the Analyzer's word for changes: those that are named, or with none all
// that have not to be, and which are proven good, if it says so.
func (c *Changes) Renew(r *attunev1.RenewLease) {
	now := time.Now()
	c.leases.renew(r.GetChanges(), now)
	if proven := r.GetProven(); proven != nil {
		c.leases.prove(proven.GetChanges(), time.Duration(proven.GetLeaseNanos()), now)
	}
}

// Apply makes changes, all or nothing, and answers. If the connection by which they were
// asked for is lost meanwhile, they are the Analyzer's only if it says so.
func (c *Changes) Apply(connection uint64, requestID string, changes []*attunev1.Change) {
	if why := c.whyNot(changes); why != nil {
		c.answerAll(requestID, refuseAll(changes, why.Error()))
		return
	}
	c.prepare(changes)
	items := make([]actuate.Item, 0, len(changes))
	for _, change := range changes {
		item := actuate.Item{Change: change}
		if t := c.options.Members.Get(change.GetProcess()); t != nil {
			item.Process = t
		}
		items = append(items, item)
	}
	c.answerAll(requestID, c.actuator.ApplySet(c.options.Context, items, c.hooks(connection)))
}

// hooks have leases of what is made, and of what failed and is yet to be taken back.
func (c *Changes) hooks(connection uint64) actuate.SetHooks {
	return actuate.SetHooks{
		Applied: func(change *attunev1.Change) {
			c.leases.add(change.GetId(), time.Duration(change.GetLeaseNanos()), connection, time.Now())
		},
		Undoing: func(changeID string) { c.leases.owe(changeID, time.Now()) },
	}
}

// whyNot is why none of the changes may be made; nil: the policy of actions decides.
func (c *Changes) whyNot(changes []*attunev1.Change) error {
	asked := make(map[string]bool) // of another process, for which this one waits
	for _, change := range changes {
		if t := c.options.Members.Get(change.GetProcess()); t != nil {
			if err := cmp.Or(t.OutOfReach(), c.options.Foreign(t.PID())); err != nil && t.Alive() {
				return fmt.Errorf("process %d: %w", t.PID(), err)
			}
			executable := t.Executable()
			if asked[executable] {
				continue
			}
			if why := c.options.Untouched(executable); why != "" {
				return errors.New(why)
			}
			asked[executable] = true
		}
	}
	return nil
}

// prepare brings DMLib into the processes of changes, which would do without
// less well or not at all. What acts from outside needs none, and must not wait:
// a process that gets little CPU time may take seconds to take DMLib in.
func (c *Changes) prepare(changes []*attunev1.Change) {
	ctx, cancel := context.WithTimeout(c.options.Context, needTimeout)
	defer cancel()
	var all sync.WaitGroup
	for _, change := range changes {
		if t := c.options.Members.Get(change.GetProcess()); t != nil && !c.kinds.FromOutside(change.GetAction()) {
			all.Go(func() { c.options.BringIn(ctx, t) })
		}
	}
	all.Wait()
}

func refuseAll(changes []*attunev1.Change, reason string) (results []*attunev1.ActionResult) {
	for _, change := range changes {
		results = append(results, &attunev1.ActionResult{
			ChangeId: change.GetId(), Outcome: attunev1.Outcome_OUTCOME_REFUSED, Reason: reason,
		})
	}
	return results
}

// Undo takes changes back, the last first in each process, and answers for each when it is
// undone. What cannot be undone for the time being Look tries again.
func (c *Changes) Undo(requestID string, changeIDs []string) {
	for _, id := range changeIDs {
		c.leases.owe(id, time.Now())
	}
	latestFirst := slices.Clone(changeIDs)
	slices.Reverse(latestFirst)
	for result := range actuate.UndoEach(context.WithoutCancel(c.options.Context), c.actuator, latestFirst) {
		c.options.Log.Info("change taken back", "change", result.GetChangeId(), "outcome", result.GetOutcome(), "reason", result.GetReason())
		c.answerAll(requestID, []*attunev1.ActionResult{result})
	}
}

func (c *Changes) answerAll(requestID string, results []*attunev1.ActionResult) {
	for _, result := range results {
		result.RequestId = requestID
		c.options.Answered(result)
		c.options.Answer(&attunev1.ManageRequest{Message: &attunev1.ManageRequest_Result{Result: result}})
	}
}

// TakeOverTime is how long a controller looks for what an earlier one holds.
const TakeOverTime = actuate.MaxHold

// TakeOver takes over what earlier controllers hold in the processes that are there by
// now, and tells the Analyzer.
func (c *Changes) TakeOver() {
	o := c.options
	if !o.TakesOver {
		return
	}
	taken, err := actuate.TakeOver(c.actuator, o.StateDir, func(identity procid.Identity) access.Process {
		if m := o.Members.OfPID(identity.PID); m != nil && m.OutOfReach() == nil && o.Foreign(m.PID()) == nil {
			return m
		}
		return nil
	}, func(process access.Process) string { return o.Untouched(process.(*member.Member).Executable()) })
	if err != nil {
		o.Log.Warn("changes of an earlier controller are not taken over", "error", err)
	}
	if len(taken) == 0 {
		return
	}
	told := new(attunev1.TakenOver)
	for _, one := range taken {
		c.leases.take(one.ID, one.Lease, time.Now())
		told.Changes = append(told.Changes, one.ID)
	}
	o.Answer(&attunev1.ManageRequest{Message: &attunev1.ManageRequest_TakenOver{TakenOver: told}})
}
