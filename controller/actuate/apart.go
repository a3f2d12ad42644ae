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
	var apart partition
	ofProcess := make(map[access.Process]int)
	shared := make(map[int]Undos)     // with other processes, perhaps
	ofImage := make(map[uint64][]int) // what forks have, too
	sets := make([]int, len(ids))
	for i, id := range ids {
		var process access.Process
		var undo Undos
		change := f.applied[id]
		if change != nil {
			process, undo = change.process, change.plan.Undo
		}
		if _, known := ofProcess[process]; !known {
			ofProcess[process] = apart.add()
		}
		sets[i] = ofProcess[process]
		if change != nil && change.plan.lineage != (access.Lineage{}) {
			image := process.Identity().Image
			for _, earlier := range ofImage[image] {
				if other := f.applied[ids[earlier]]; change.below(other) || other.below(change) {
					apart.unite(sets[earlier], sets[i])
				}
			}
			ofImage[image] = append(ofImage[image], i)
		}
		if !undo.bearsOn(undo) {
			continue
		}
		for earlier, other := range shared {
			if undo.bearsOn(other) {
				apart.unite(sets[earlier], sets[i])
			}
		}
		shared[i] = undo
	}
	at := make(map[int]int)
	for i, id := range ids {
		set := apart.find(sets[i])
		if _, known := at[set]; !known {
			at[set], groups = len(groups), append(groups, nil)
		}
		groups[at[set]] = append(groups[at[set]], id)
	}
	return groups
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
