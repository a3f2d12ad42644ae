// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"context"
	"slices"
	"time"

	"github.com/attune-hpc/attune/controller/budget"
	"github.com/attune-hpc/attune/controller/member"
	"github.com/attune-hpc/attune/controller/probe"
	"github.com/attune-hpc/attune/internal/beat"
	"github.com/attune-hpc/attune/internal/procid"
)

// DefaultBudget is the share of a process' CPU time that its measure points may
// take.
const DefaultBudget = 0.02

// budgetPeriod is how often the accounts are looked at.
const budgetPeriod = 500 * time.Millisecond

// overhead is the account of one process at the last look.
type overhead struct {
	at  time.Time
	cpu time.Duration
}

// budgeting has processes with measure points that they cannot afford get less of
// them.
type budgeting struct {
	members *member.Set
	records *records
	placer  func() *probe.Placer
	clock   func() time.Time
	ledgers member.Keep[budget.Ledger]
	last    member.Keep[overhead]
}

// run looks at the accounts until ctx ends.
func (b *budgeting) run(ctx context.Context) error {
	beat.Tick(ctx, budgetPeriod, func(time.Time) {
		if b.placer().Points() > 0 {
			b.settle()
		}
	})
	return nil
}

// settle looks at every process that has points.
func (b *budgeting) settle() {
	for _, t := range b.members.List() {
		loads := b.placer().Loads(t.Handle())
		cpu, err := procid.CPUTime(t.PID())
		if err != nil || !t.Alive() || len(loads) == 0 {
			continue // it has just ended, or has nothing to pay for
		}
		last, now := b.last.Of(t), overhead{b.clock(), cpu}
		before := *last
		*last = now
		hits := b.records.takeHits(t)
		if before.at.IsZero() {
			continue
		}
		current := slices.Clone(loads)
		for i := range current {
			current[i].Hits = hits[current[i].Point].total(current[i].Every)
		}
		for _, step := range b.ledgers.Of(t).Round(now.at.Sub(before.at), now.cpu-before.cpu, current) {
			b.placer().Degrade(t.Handle(), step)
		}
	}
}
