// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Member is one change of a set that is made at an agreed call.
type Member struct {
	Process Process
	Change  *attunev1.Change
}

// IsAgreed says whether a change is to be made at an agreed call.
func IsAgreed(change *attunev1.Change) bool {
	return change.GetSafePoint().GetKind() == attunev1.SafePoint_KIND_AGREED_CALL
}

// ApplyAgreed gives an MPI control variable the same value in all ranks of a
// job, before the same call of a function in each. The answers are all alike:
// either it was done everywhere, or nowhere. Undoing any of the changes undoes
// all of them, at another agreed call.
func (a *Actuator) ApplyAgreed(ctx context.Context, members []Member) []*attunev1.ActionResult {
	unlock := lockAll(members)
	defer unlock()
	results := make([]*attunev1.ActionResult, len(members))
	for i, m := range members {
		results[i] = &attunev1.ActionResult{ChangeId: m.Change.GetId()}
	}
	where, old, value, err := a.applyAgreed(ctx, members)
	for _, result := range results {
		switch {
		case err == nil:
			result.Outcome, result.SafePoint = attunev1.Outcome_OUTCOME_APPLIED, where
			result.OldValue, result.NewValue = integer(old), integer(value)
		case errors.Is(err, ErrRefused):
			result.Outcome, result.Reason = attunev1.Outcome_OUTCOME_REFUSED, err.Error()
		default:
			result.Outcome, result.Reason = attunev1.Outcome_OUTCOME_FAILED, err.Error()
		}
	}
	a.log.Info("agreed change", "ranks", len(members), "outcome", results[0].GetOutcome(), "reason", results[0].GetReason(), "safe_point", where)
	return results
}

// lockAll takes the locks of all processes, each once, in the order of their
// ids.
func lockAll(members []Member) (unlock func()) {
	sorted := slices.SortedFunc(slices.Values(members), func(x, y Member) int { return x.Process.PID() - y.Process.PID() })
	sorted = slices.CompactFunc(sorted, func(x, y Member) bool { return x.Process == y.Process })
	for _, m := range sorted {
		m.Process.Lock()
	}
	return func() {
		for _, m := range sorted {
			m.Process.Unlock()
		}
	}
}

func (a *Actuator) applyAgreed(ctx context.Context, members []Member) (where string, old, value int64, err error) {
	first := members[0].Change
	name, isMPI := isMPI(first.GetAction().GetSetting().GetName())
	value, isWhole := whole(first.GetAction().GetSetting().GetValue())
	if !isMPI || !isWhole {
		return "", 0, 0, fmt.Errorf("%w: at an agreed call only MPI control variables (%sNAME) are changed, to whole numbers", ErrRefused, mpiPrefix)
	}
	if err := a.allowedMembers(members); err != nil {
		return "", 0, 0, err
	}
	if err := a.checkMembers(members); err != nil {
		return "", 0, 0, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	g := &ranks{at: first.GetSafePoint()}
	ctx, cancel := safePointContext(ctx, g.at)
	defer cancel()
	if err := g.open(ctx, members, name); err != nil {
		return "", 0, 0, fmt.Errorf("%w: %w", ErrRefused, errors.Join(err, g.close(ctx)))
	}
	for _, m := range members { // rule: nothing is changed that is not in the journal
		if err := a.options.Journal.begin(m.Change.GetId(), m.Change.GetKnob(), m.Process.Identity(), &plan{}); err != nil {
			return "", 0, 0, errors.Join(err, a.endAgreed(members, "undone"), g.close(ctx))
		}
	}
	where, err = g.switchTo(ctx, value)
	if errors.Is(err, errMissed) || errors.Is(err, errDiffer) {
		return "", 0, 0, err // they are not equal any more: it stays in the journal
	}
	if err != nil {
		return "", 0, 0, errors.Join(err, a.endAgreed(members, "undone"), g.close(ctx))
	}
	for _, m := range members {
		if !a.enter(m.Change, m.Process, &plan{old: integer(g.old), undo: g.undo}) {
			return "", 0, 0, a.giveUpAgreed(ctx, members, g)
		}
	}
	return where, g.old, value, nil
}

// giveUpAgreed takes everything back because the controller stops.
func (a *Actuator) giveUpAgreed(ctx context.Context, members []Member, g *ranks) error {
	err := g.undo(context.WithoutCancel(ctx))
	if err == nil {
		err = a.endAgreed(members, "undone")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, m := range members {
		delete(a.applied, m.Change.GetId())
	}
	return errors.Join(fmt.Errorf("%w: the controller stops", ErrRefused), err)
}

func (a *Actuator) endAgreed(members []Member, outcome string) error {
	var errs []error
	for _, m := range members {
		errs = append(errs, a.options.Journal.end(m.Change.GetId(), outcome))
	}
	return errors.Join(errs...)
}

// allowedMembers asks the policy about every member, before any is looked at.
func (a *Actuator) allowedMembers(members []Member) error {
	for _, m := range members {
		s := m.Change.GetAction().GetSetting()
		if err := a.allowed(m.Process, "setting", []*attunev1.Value{s.GetValue()}, s.GetName()); err != nil {
			return err
		}
	}
	return nil
}

// checkMembers says whether the set is one change of a whole job.
func (a *Actuator) checkMembers(members []Member) error {
	first := members[0].Change
	seen := make(map[int]bool)
	var size int
	for _, m := range members {
		s, f := m.Change.GetAction().GetSetting(), first.GetAction().GetSetting()
		value, _ := whole(s.GetValue())
		same, _ := whole(f.GetValue())
		at, of := m.Change.GetSafePoint().GetFunction(), first.GetSafePoint().GetFunction()
		switch {
		case !IsAgreed(m.Change) || s.GetName() != f.GetName() || value != same || at.GetSymbol() != of.GetSymbol() || at.GetObject() != of.GetObject():
			return errors.New("a set with an agreed call is the same change of all ranks, and nothing else")
		case a.find(m.Change.GetId()) != nil:
			return fmt.Errorf("change %s is in force already", m.Change.GetId())
		}
		rank, ranks, err := rankOf(m.Process.PID())
		if err != nil {
			return err
		}
		if seen[rank] {
			return fmt.Errorf("two processes say that they are rank %d", rank)
		}
		seen[rank], size = true, max(size, ranks)
	}
	if len(seen) != size {
		return fmt.Errorf("the job has %d ranks, and %d are to be changed: it must be all, on one node", size, len(seen))
	}
	return nil
}

// rankVariables are by what launchers tell a process its rank and their number.
var rankVariables = [][2]string{
	{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
	{"PMI_RANK", "PMI_SIZE"},
}

// rankOf is a process' rank and how many there are, as its launcher told it.
func rankOf(pid int) (rank, size int, err error) {
	environment, err := procid.Environ(pid)
	if err != nil {
		return 0, 0, err
	}
	variables := make(map[string]string)
	for _, entry := range environment {
		name, value, _ := bytes.Cut(entry, []byte("="))
		variables[string(name)] = string(value)
	}
	for _, names := range rankVariables {
		rank, errRank := strconv.Atoi(variables[names[0]])
		size, errSize := strconv.Atoi(variables[names[1]])
		if errRank == nil && errSize == nil {
			return rank, size, nil
		}
	}
	return 0, 0, fmt.Errorf("process %d has no rank in its environment: how many there are cannot be told", pid)
}

// ranks are all processes of a job that one variable is changed in.
type ranks struct {
	old int64
	at  *attunev1.SafePoint

	mu      sync.Mutex // guards what follows
	members []rankControl
	undone  bool
}

// rankControl is the variable in one of them.
type rankControl struct {
	process Process
	counter Numbered
	control *control
}

// errDiffer says that the ranks do not have the same value.
var errDiffer = errors.New("the ranks have different values")

// open gets hold of the variable in every rank. What is open when it fails must
// be closed.
func (g *ranks) open(ctx context.Context, members []Member, name string) error {
	for i, m := range members {
		counter, err := counterOf(m.Process, m.Change.GetSafePoint().GetFunction())
		if err != nil {
			return fmt.Errorf("process %d: %w", m.Process.PID(), err)
		}
		c, err := openControl(ctx, m.Process, library{mailbox: counter}, name)
		if err != nil {
			return fmt.Errorf("process %d: %w", m.Process.PID(), err)
		}
		g.members = append(g.members, rankControl{process: m.Process, counter: counter, control: c})
		old, err := c.read(ctx)
		if err == nil {
			err = c.rehearse(ctx, old)
		}
		if err != nil {
			return fmt.Errorf("process %d: %w", m.Process.PID(), err)
		}
		if i == 0 {
			g.old = old
		}
		if old != g.old {
			return fmt.Errorf("%w: %d and %d", errDiffer, g.old, old)
		}
	}
	return nil
}

// counterOf finds the counter of the function that the safe point names.
func counterOf(process Process, function *attunev1.Function) (Numbered, error) {
	n, ok := process.(numbering)
	if !ok {
		return nil, errNoDMLib
	}
	found, err := resolve(process, function.GetObject(), function.GetSymbol(), objfile.Function)
	if err != nil {
		return nil, err
	}
	return n.Numbered(found)
}

// switchTo gives the variable a value in all ranks, and reads it back.
func (g *ranks) switchTo(ctx context.Context, value int64) (where string, err error) {
	var together agreement
	for _, m := range g.members {
		call, err := m.control.write(value)
		if err != nil {
			return "", err
		}
		together.parties = append(together.parties, &party{
			name: fmt.Sprintf("process %d", m.process.PID()), alive: m.process.Alive, function: m.counter, call: call,
		})
	}
	if err := together.run(ctx); err != nil {
		return "", err
	}
	var errs []error
	for _, p := range together.parties {
		if err := mpiError(p.result); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w: %w", p.name, errDiffer, err))
		}
	}
	return together.parties[0].where, errors.Join(errs...)
}

// undo gives the old value back in all ranks that live, at a call that they
// agree on; every change of the set asks for it, and it is done once.
func (g *ranks) undo(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.undone {
		return nil
	}
	g.members = slices.DeleteFunc(g.members, func(m rankControl) bool { return !m.process.Alive() })
	ctx, cancel := safePointContext(ctx, g.at)
	defer cancel()
	if len(g.members) > 0 {
		if _, err := g.switchTo(ctx, g.old); err != nil {
			return err
		}
	}
	g.undone = true
	return g.close(ctx)
}

// close lets go of the variable everywhere.
func (g *ranks) close(ctx context.Context) error {
	var errs []error
	for _, m := range g.members {
		errs = append(errs, m.control.close(ctx))
	}
	g.members = nil
	return errors.Join(errs...)
}
