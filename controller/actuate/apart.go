// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"context"
	"fmt"
	"sync"

	"github.com/attune-hpc/attune/controller/actuate/access"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// UndoEach is [Actuator.Undo] of several changes: in the order given where one bears on
// another, and in no process later because something is being changed in another one. The
// results come when they are known; the channel has room for all of them, and is closed
// after the last.
func UndoEach(ctx context.Context, a *Actuator, changeIDs []string) <-chan *attunev1.ActionResult {
	results := make(chan *attunev1.ActionResult, len(changeIDs))
	var all sync.WaitGroup
	for _, ids := range a.force.apart(changeIDs) {
		all.Go(func() {
			for _, id := range ids {
				results <- a.Undo(ctx, id)
			}
		})
	}
	go func() {
		all.Wait()
		close(results)
	}()
	return results
}

// Left is why a change that was to be undone stays in force, by what [Actuator.Undo] said;
// nil: it does not.
func Left(a *Actuator, undone *attunev1.ActionResult) error {
	change := a.force.find(undone.GetChangeId())
	if change == nil || undone.GetOutcome() != attunev1.Outcome_OUTCOME_FAILED {
		return nil
	}
	return fmt.Errorf("change %s of %s in process %d stays in force: %s", undone.GetChangeId(), change.knob, change.process.PID(), undone.GetReason())
}

// Ended says whether a change was in force until it was undone, by what [Actuator.Undo] said. It
// is still in force where it could not be taken back for the time being.
func Ended(a *Actuator, undone *attunev1.ActionResult) bool {
	return undone.GetOutcome() != attunev1.Outcome_OUTCOME_GONE && Left(a, undone) == nil
}

// apart returns changes in groups that do not bear on each other, each in the order given:
// those of one process, and with them those of other processes that are of the same thing,
// as of one pipe or cgroup, are undone together, as in the ranks of a job, or of which one was
// born with the other. What is not in force is a group of its own.
func (f *force) apart(ids []string) (groups [][]string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := grouping{ofProcess: make(map[access.Process]int), ofImage: make(map[uint64][]grouped)}
	for _, id := range ids {
		all.take(f.applied[id])
	}
	at := make(map[int]int)
	for i, id := range ids {
		set := all.find(all.sets[i])
		if _, known := at[set]; !known {
			at[set], groups = len(groups), append(groups, nil)
		}
		groups[at[set]] = append(groups[at[set]], id)
	}
	return groups
}

// grouping unites changes that bear on each other. The lock of the force is held.
type grouping struct {
	partition
	ofProcess map[access.Process]int
	sets      []int                // of each change, in the order in which they were taken
	shared    []grouped            // with other processes, perhaps
	ofImage   map[uint64][]grouped // what forks have, too
}

// grouped is a change and its set.
type grouped struct {
	*appliedChange
	set int
}

// take puts a change into the set of its process, with all that it bears on; nil: it is not in
// force.
func (g *grouping) take(change *appliedChange) {
	var process access.Process
	if change != nil {
		process = change.process
	}
	set, known := g.ofProcess[process]
	if !known {
		set = g.add()
		g.ofProcess[process] = set
	}
	g.sets = append(g.sets, set)
	if change == nil {
		return
	}
	taken, undo := grouped{change, set}, change.plan.Undo
	if change.plan.lineage != (access.Lineage{}) {
		image := process.Identity().Image
		g.uniteWith(taken, g.ofImage[image], func(other grouped) bool {
			return change.below(other.appliedChange) || other.below(change)
		})
		g.ofImage[image] = append(g.ofImage[image], taken)
	}
	if undo.bearsOn(undo) {
		g.uniteWith(taken, g.shared, func(other grouped) bool { return undo.bearsOn(other.plan.Undo) })
		g.shared = append(g.shared, taken)
	}
}

func (g *grouping) uniteWith(taken grouped, others []grouped, bears func(grouped) bool) {
	for _, other := range others {
		if bears(other) {
			g.unite(other.set, taken.set)
		}
	}
}

// bearsOn says whether the undo of a change is not to be made beside that of another process'.
func (u Undos) bearsOn(other Undos) bool { return u.overlaps(other, false) || u.sharedWith(other) }

// partition is sets of numbers that are united again and again: each number has another one
// of its set, down to the least, which stands for the set.
type partition []int

// add makes a set of one more number, which it returns.
func (p *partition) add() int {
	*p = append(*p, len(*p))
	return len(*p) - 1
}

func (p partition) find(n int) int {
	for p[n] != n {
		n = p[n]
	}
	return n
}

func (p partition) unite(n, m int) {
	n, m = p.find(n), p.find(m)
	p[max(n, m)] = min(n, m)
}
