// SPDX-License-Identifier: Apache-2.0

package core

import attunev1 "github.com/attune-hpc/attune/proto/attune/v1"

// Busy reports whether a request to the controllers is unanswered.
func (c *Core) Busy() bool { return c.requests.busy() }

// Deciding reports whether a proposal waits for samples: its own baseline, or
// those that judge it.
func (c *Core) Deciding() bool { return c.line.deciding() }

// Held returns the changes that are to stay in force as things stand: those
// that were kept, those that are being judged, and those that wait for the others of
// their proposals to be made, in the order of their proposals.
func (c *Core) Held() []Held { return c.line.held() }

// Kept returns the ids of the changes that the end of the session leaves in force, if it
// is to leave what was judged good: also those that are being compared again.
func (c *Core) Kept() []string { return c.line.kept() }

// Changed returns the proposals and refusals that may not be as they were at the
// last call, and the numbers of those that have been forgotten since. They are not to be
// modified.
func (c *Core) Changed() (changed []*attunev1.RecordedProposal, forgotten []uint64) {
	return c.changed()
}

// Forgotten returns how many proposals and refusals there was no room for.
func (c *Core) Forgotten() int { return c.lost }
