// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/budget"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
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

// budgetLoop has processes with measure points that they cannot afford get less
// of them.
func (c *Controller) budgetLoop(ctx context.Context) error {
	ledger := budget.New(c.config.Budget)
	accounts := make(map[uint64]overhead)
	ticker := time.NewTicker(budgetPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if c.placer.Points() > 0 {
			c.settleAccounts(ledger, accounts)
		}
		for handle := range accounts {
			if c.members.Get(handle) == nil {
				delete(accounts, handle)
				ledger.Forget(handle)
			}
		}
	}
}

// settleAccounts looks at every process that has points.
func (c *Controller) settleAccounts(ledger *budget.Ledger, accounts map[uint64]overhead) {
	for _, t := range c.members.List() {
		loads := c.placer.Loads(t.Handle())
		cpu, err := cpuTime(t.PID())
		if err != nil || !t.Alive() || len(loads) == 0 {
			continue // it has just ended, or has nothing to pay for
		}
		before, known := accounts[t.Handle()]
		now := overhead{c.config.budgetClock(), cpu}
		accounts[t.Handle()] = now
		hits := c.records.takeHits(t.Handle())
		if !known {
			continue
		}
		current := make([]budget.Load, len(loads))
		for i, load := range loads {
			load.Hits = hits[load.Point]
			current[i] = load
		}
		for _, step := range ledger.Round(t.Handle(), now.at.Sub(before.at), now.cpu-before.cpu, current) {
			c.placer.Degrade(t.Handle(), step)
		}
	}
}

// cpuTime is the CPU time of all threads of a process, by its CPU clock: the
// kernel makes its number of the pid (CPUCLOCK_SCHED), for anybody to read.
func cpuTime(pid int) (time.Duration, error) {
	const schedule = 2
	var now unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|schedule), &now); err != nil {
		return 0, err
	}
	return time.Duration(now.Nano()), nil
}

// countHits adds to what the budget knows of a point. The caller holds mu.
func (r *records) countHits(handle uint64, point uint16, hits uint64) {
	of := r.hits[handle]
	if of == nil {
		of = make(map[uint16]uint64)
		r.hits[handle] = of
	}
	of[point] += hits
}

// countAggregates adds what was summed up.
func (r *records) countAggregates(aggregates []*attunev1.Aggregate) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range aggregates {
		r.countHits(a.GetProcess(), uint16(a.GetPoint()), a.GetCount()+a.GetUnreadable())
	}
}

// countRecords adds packed records, and returns how many there are. The caller
// holds mu.
func (r *records) countRecords(handle uint64, packed []byte) (n uint64) {
	for run := range attunev1.RecordRuns(packed) {
		r.countHits(handle, uint16(run.Point), run.Records)
		n += run.Records
	}
	return n
}

// takeHits returns the hits of a process since the last call, by point.
func (r *records) takeHits(handle uint64) map[uint16]uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	hits := r.hits[handle]
	delete(r.hits, handle)
	return hits
}
