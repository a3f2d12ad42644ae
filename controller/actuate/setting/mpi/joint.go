// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// changedRanks is an MPI control variable that was changed in ranks of a job together, for
// the journal: it is given back in all of them together.
type changedRanks struct {
	// Setting by its name, and what it was given.
	Setting string `json:"setting"`
	New     int64  `json:"new"`
	// Members are the ranks, and Olds what it was in each: one of local scope may differ.
	Members []procid.Identity `json:"members"`
	Olds    []int64           `json:"olds"`

	mu     sync.Mutex // guards what follows
	undone bool
}

// NewUndo makes an empty undo of a change of ranks.
func NewUndo() actuate.Undo { return new(changedRanks) }

func (*changedRanks) Kind() string { return "ranks" }

// TakeBack gives the old values back in all ranks together, once.
func (r *changedRanks) TakeBack(ctx context.Context, _ actuate.Changed) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.undone {
		return nil
	}
	err := restoreRanks(ctx, r)
	r.undone = err == nil
	return err
}

func (r *changedRanks) Overlaps(other actuate.Undo, sameProcess bool) bool {
	o, ok := other.(*changedRanks)
	return ok && sameProcess && r.Setting == o.Setting
}

func (*changedRanks) About(actuate.Changed) actuate.About { return actuate.About{Keeps: true} }

// SameAs implements [common].
func (r *changedRanks) SameAs(other actuate.Undo) bool {
	o, ok := other.(*changedRanks)
	return ok && r.Setting == o.Setting && r.New == o.New && slices.Equal(r.Members, o.Members) && slices.Equal(r.Olds, o.Olds)
}

// Variables changes a control variable in all ranks of a job, before one call.
type Variables struct{}

// Together implements [actuate.Joint].
func (Variables) Together(action *attunev1.Action) (name string, ok bool) {
	name = action.GetSetting().GetName()
	return name, IsVariable(name)
}

// Gather implements [actuate.Joint].
func (Variables) Gather(unit []*actuate.Request) (actuate.Gathering, error) {
	first := unit[0].Change
	setting := first.GetAction().GetSetting()
	value := attunev1.ValueText(setting.GetValue())
	var processes []access.Process
	for _, r := range unit {
		other := r.Change.GetAction().GetSetting()
		switch {
		case attunev1.ValueText(other.GetValue()) != value:
			return nil, fmt.Errorf("%w: %s is given different values at one time", access.ErrRefused, setting.GetName())
		case r.Change.GetSafePoint().GetKind() == attunev1.SafePoint_KIND_NOW:
			return nil, fmt.Errorf("%w: %s is changed at the same call in all ranks, not now", access.ErrRefused, setting.GetName())
		}
		if err := r.Allowed("setting", []*attunev1.Value{other.GetValue()}, other.GetName()); err != nil {
			return nil, err
		}
		processes = append(processes, r.Process)
	}
	g, err := newRanks(processes, strings.TrimPrefix(setting.GetName(), mpiPrefix))
	if err != nil {
		return nil, err
	}
	g.text, g.patience = value, meetingPatience
	if timeout := first.GetSafePoint().GetTimeoutNanos(); timeout > 0 {
		g.patience = time.Duration(timeout)
	}
	return g, nil
}

// Meet implements [actuate.Gathering].
func (g *ranks) Meet(ctx context.Context, begin func(*actuate.Plan) error) (left bool, err error) {
	if begin != nil {
		g.begin = func() error { return begin(g.plan()) }
	}
	err = g.meet(ctx)
	return errors.Is(err, errDiffer), err
}

// Part implements [actuate.Gathering].
func (g *ranks) Part(index int) actuate.Part {
	m := g.members[index]
	return actuate.Part{
		Old: access.Integer(m.facts.old), New: access.Integer(m.value),
		How: access.Done{Where: g.where(), Way: access.WayStopped, Stopped: m.result.Stopped},
	}
}

// plan is the change that all ranks have in common, for the journal and for undoing.
func (g *ranks) plan() *actuate.Plan {
	r := &changedRanks{Setting: g.name, New: g.members[0].value}
	for _, m := range g.members {
		r.Members, r.Olds = append(r.Members, m.process.Identity()), append(r.Olds, m.facts.old)
	}
	p := &actuate.Plan{
		Undo: actuate.Undos{r}, Way: access.WayStopped,
		Told: actuate.Told{Where: g.where(), New: attunev1.ValueText(access.Integer(r.New))},
	}
	if least, most := slices.Min(r.Olds), slices.Max(r.Olds); least == most {
		p.Old, p.Told.Old = access.Integer(least), attunev1.ValueText(access.Integer(least))
	} else {
		p.Told.Old = fmt.Sprintf("%d to %d", least, most)
	}
	return p
}

// restoreRanks gives the old values back in all ranks together. The job has to be
// whole: without one rank the others come to no collective operation any more.
func restoreRanks(ctx context.Context, r *changedRanks) error {
	var processes []access.Process
	var all []*access.Journaled
	for _, identity := range r.Members {
		p := access.ProcessOf(identity)
		if all = append(all, p); p.Alive() {
			processes = append(processes, p)
		}
	}
	defer func() {
		for _, p := range all {
			p.Close()
		}
	}()
	switch {
	case len(processes) == 0:
		return nil
	case len(processes) < len(r.Members):
		return fmt.Errorf("%d of %d ranks have ended: the others meet at no call any more, and keep the value until they end", len(r.Members)-len(processes), len(r.Members))
	}
	if len(r.Olds) != len(r.Members) {
		return errors.New("another version of Attune has written down what the ranks had before")
	}
	g, err := newRanks(processes, r.Setting)
	if err != nil {
		return err
	}
	g.undo, g.patience, g.begin = r, meetingPatience, func() error { return nil }
	return g.meet(ctx)
}
