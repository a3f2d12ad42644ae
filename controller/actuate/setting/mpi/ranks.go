// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/controller/inject"
	"github.com/attune-hpc/attune/controller/inject/tracer"
	"github.com/attune-hpc/attune/internal/proc"
)

// ranks are processes of an MPI job in which one variable is changed together.
type ranks struct {
	name    string // of the variable
	members []*member

	// Of a change: what is asked for, as people write it. Of an undo: the values are
	// known.
	text string
	undo *changedRanks
	// begin is called before the first rank is changed. nil: none is.
	begin func() error
	// patience is how long is waited for all ranks.
	patience time.Duration
}

// meetingPatience is the usual one: most programs come to a collective operation
// sooner, and nobody stands until somebody has.
const meetingPatience = 10 * time.Second

// member is one of them.
type member struct {
	process access.Process
	held    *proc.Handle
	library *mpiLibrary
	facts   mpiFacts
	value   int64 // that it gets
	result  tracer.Cost
	came    bool // to a call of a collective operation
	err     error
}

// newRanks finds what can be found without a stop.
func newRanks(processes []access.Process, name string) (*ranks, error) {
	g := &ranks{name: name}
	for _, process := range processes {
		if err := g.add(process); err != nil {
			return nil, err
		}
	}
	if err := g.oneJob(); err != nil {
		return nil, err
	}
	return g, nil
}

func (g *ranks) add(process access.Process) error {
	library, err := findMPI(process)
	if err != nil {
		return fmt.Errorf("process %d: %w", process.PID(), err)
	}
	held, err := process.Hold()
	if err != nil {
		return err
	}
	g.members = append(g.members, &member{process: process, held: held, library: library})
	return nil
}

// oneJob refuses ranks of several jobs, which would never meet but by chance.
func (g *ranks) oneJob() error {
	job := jobOf(g.members[0].process.PID())
	for _, m := range g.members {
		switch mine := jobOf(m.process.PID()); {
		case mine == "":
			return fmt.Errorf("process %d has no rank in its environment: it was not started by an MPI launcher", m.process.PID())
		case mine != job:
			return fmt.Errorf("processes %d and %d belong to different jobs: change one at a time", g.members[0].process.PID(), m.process.PID())
		}
	}
	return nil
}

// Steps that ranks take together.
const (
	stepLooked = iota
	stepWritten
)

// meet brings all ranks to one call and changes the variable there, or looks at it
// only. It is done in all, or in none. errDiffer: the ranks may have different
// values now.
func (g *ranks) meet(ctx context.Context) error {
	gathering := newMeeting(len(g.members))
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for _, m := range g.members {
		all.Go(func() {
			if m.err = g.attend(ctx, gathering, m); m.err != nil {
				gathering.fail(fmt.Errorf("process %d: %w", m.process.PID(), m.err))
				cancel(gathering.failure())
			}
		})
	}
	all.Wait()
	for _, m := range g.members {
		if errors.Is(m.err, errDiffer) && m.process.Alive() {
			return fmt.Errorf("process %d: %w", m.process.PID(), m.err)
		}
	}
	return g.explain(gathering.failure())
}

// explain adds to an error what is better not looked for while ranks stand.
func (g *ranks) explain(err error) error {
	switch {
	case errors.Is(err, inject.ErrNoSafePoint):
		return fmt.Errorf("the ranks did not meet: %s", g.absent())
	case errors.Is(err, errIncomplete):
		return fmt.Errorf("%w: %s", err, g.others())
	}
	return err
}

// absent says who did not come.
func (g *ranks) absent() string {
	var names []string
	for _, c := range collectives() {
		names = append(names, strings.TrimPrefix(c.function, "P"))
	}
	var pids []string
	for _, m := range g.members {
		if !m.came {
			pids = append(pids, strconv.Itoa(m.process.PID()))
		}
	}
	if len(pids) == 0 {
		return fmt.Sprintf("the ranks did not stand before the same call at one time in %v, of which one waits for the others %v at most", g.patience, mostHold)
	}
	return fmt.Sprintf("in %v %s came to no call of %s with MPI_COMM_WORLD, or were inside one all the time", g.patience, strings.Join(pids, ", "), strings.Join(names, ", "))
}

// others says which other ranks there are.
func (g *ranks) others() string {
	here := jobRanks(jobOf(g.members[0].process.PID()))
	if len(here) < g.members[0].facts.ranks {
		return fmt.Sprintf("only %d run on this node, so set it at launch", len(here))
	}
	return "name all of them: " + strings.Trim(fmt.Sprint(here), "[]")
}

// attend brings one rank there.
func (g *ranks) attend(ctx context.Context, gathering *meeting, m *member) error {
	patience := inject.ExecuteOptions{Patience: g.patience}
	var err error
	m.result, err = inject.Meet(ctx, m.held, m.library.entries, patience, func(v *inject.Visit) (bool, error) {
		if !m.library.suits(v) {
			return false, nil
		}
		m.came = true
		switch err := gathering.come(v); {
		case errors.Is(err, errGoOn):
			return false, nil
		case err != nil:
			return true, err
		}
		return true, g.change(gathering, m, v)
	})
	return err
}

// change is what one rank does when all stand.
func (g *ranks) change(gathering *meeting, m *member, v *inject.Visit) error {
	c, err := m.library.openControl(v, g.name)
	defer c.close()
	m.facts = c.facts
	if err == nil && g.begin != nil {
		err = c.write(c.facts.old) // a rank that would refuse does so now
	}
	if err := gathering.step(v, stepLooked, err, g.decide); err != nil || g.begin == nil {
		return err
	}
	err = gathering.step(v, stepWritten, c.write(m.value), nil)
	if err == nil {
		return nil
	}
	if back := c.write(m.facts.old); back != nil {
		return fmt.Errorf("%w: %w; then: %w", errDiffer, err, back)
	}
	return err
}

// errDiffer says that the ranks may not be equal any more.
var errDiffer = errors.New("the ranks may have different values")

// decide looks at what all ranks have said, and has the change written down.
func (g *ranks) decide() error {
	facts := g.members[0].facts
	if g.undo != nil {
		if err := g.mine(); err != nil {
			return err
		}
		for i, m := range g.members {
			m.value = g.undo.Olds[i]
		}
		return g.begin()
	}
	for _, m := range g.members {
		if m.facts.old != facts.old && facts.scope != scopeLocal {
			return fmt.Errorf("the ranks have different values of %s already: %d and %d", g.name, facts.old, m.facts.old)
		}
	}
	if err := g.complete(); err != nil {
		return err
	}
	value, err := facts.parse(g.name, g.text)
	if err != nil {
		return err
	}
	for _, m := range g.members {
		m.value = value
	}
	if g.begin == nil {
		return nil
	}
	return g.begin()
}

// complete says whether enough of the job's ranks are there.
func (g *ranks) complete() error {
	facts := g.members[0].facts
	present := make(map[int]bool)
	for _, m := range g.members {
		present[m.facts.rank] = true
	}
	if facts.scope == scopeLocal || len(present) == facts.ranks {
		return nil
	}
	return fmt.Errorf("%w: %s must be the same in all %d, and %d are named", errIncomplete, g.name, facts.ranks, len(present))
}

// errIncomplete says that a variable is not for some ranks only.
var errIncomplete = errors.New("not all ranks of the job")

// mine says whether every rank has what was there before or after the change that is
// undone: a controller that was killed may have left some with each.
func (g *ranks) mine() error {
	for i, m := range g.members {
		if now := m.facts.old; now != g.undo.Olds[i] && now != g.undo.New {
			return fmt.Errorf("%s is %d in process %d: %w", g.name, now, m.process.PID(), access.ErrChangedByOthers)
		}
	}
	return nil
}

// where names the place for people.
func (g *ranks) where() string {
	return fmt.Sprintf("the same collective call in %d ranks", len(g.members))
}
