// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"bytes"

	"github.com/attune-hpc/attune/controller/actuate/access"
)

// below says whether a later change is of the same thing, in the same process or in one that may
// be a fork of it which took this one along. The caller holds the lock of the force.
func (c *appliedChange) below(later *appliedChange) bool {
	if later.number <= c.number || c.plan.lineage == (access.Lineage{}) {
		return false
	}
	if c.process == later.process {
		return c.plan.Undo.overlaps(later.plan.Undo, true)
	}
	own, other := c.process.Identity(), later.process.Identity()
	mayBeFork := own.Image != 0 && own.Image == other.Image && !c.plan.lineage.Precedes(other.StartTicks)
	return mayBeFork && later.plan.Undo.tookAlong(c.plan.Undo)
}

// tookAlong says whether a change of a process was made on what it was born with of another one:
// two forks of one process in which the same is changed have nothing of each other. What words do
// not tell counts.
func (u Undos) tookAlong(below Undos) bool {
	for _, part := range u {
		for _, other := range below {
			if part.Overlaps(other, true) && mayLieOn(part, other) {
				return true
			}
		}
	}
	return false
}

func mayLieOn(part, below Undo) bool {
	words, ok := part.(*writtenWords)
	earlier, alike := below.(*writtenWords)
	return !ok || !alike || words.onTopOf(earlier)
}

// onTopOf says whether a word was written where the other change had left it.
func (u *writtenWords) onTopOf(below *writtenWords) bool {
	for _, w := range *u {
		for _, b := range *below {
			if w.Address == b.Address && bytes.Equal(w.Old, b.New) {
				return true
			}
		}
	}
	return false
}

// aboveInForks returns a change that lies on top of one in forks, and has to be undone there first:
// undone in its own process, or of one that has ended; nil: there is none.
func (f *force) aboveInForks(change *appliedChange, ended bool) *appliedChange {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, later := range f.applied {
		over := later.undone || ended && later.process == change.process || !later.process.Alive()
		if over && change.below(later) {
			return later
		}
	}
	return nil
}
