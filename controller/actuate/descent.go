// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"github.com/attune-hpc/attune/controller/actuate/access"
)

// below says whether a later change is of the same thing, in the same process or in one that may
// be a fork of it which took this one along. The caller holds the lock of the force.
func (c *appliedChange) below(later *appliedChange) bool {
	if later.number <= c.number || c.plan.lineage == (access.Lineage{}) {
		return false
	}
	own, other := c.process.Identity(), later.process.Identity()
	related := c.process == later.process || own.Image != 0 && own.Image == other.Image && !c.plan.lineage.Precedes(other.StartTicks)
	return related && c.plan.Undo.overlaps(later.plan.Undo, true)
}

// aboveInForks returns a change that lies on top of one in forks, and has to be undone there first:
// undone in its own process, or of the same that has ended; nil: there is none.
func (f *force) aboveInForks(change *appliedChange, ended bool) *appliedChange {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, later := range f.applied {
		if (later.undone || ended && later.process == change.process) && change.below(later) {
			return later
		}
	}
	return nil
}
