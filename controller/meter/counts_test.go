// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"testing"
	"time"

	"github.com/attune-hpc/attune/controller/bpf/uprobe"
	"github.com/attune-hpc/attune/controller/budget"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestRecordsFromBeforeASample arrive in the round after each hit was too expensive: 300,000
// hits a second, 10 % of a CPU.
func TestRecordsFromBeforeASample(t *testing.T) {
	var batch uprobe.Batch
	add := func(n int, flags uint16) {
		for range n {
			batch.Records = attunev1.AppendRecord(batch.Records, attunev1.Record{Point: 1, Flags: flags})
		}
	}
	add(1500, 0)
	add(148_500/budget.SampleEvery, attunev1.RecordSampled)
	r := newRig(nil)
	r.member.Tell()
	batch.Process = uint32(r.member.PID())
	r.kernel.take(batch)
	load := budget.Load{Point: 1, Now: budget.Sampled, Costs: budget.Costs{7.5, 4, 4}}
	load.Hits = r.Meter.records.takeHits(r.member)[1].total(budget.SampleEvery)
	if load.Hits < 149_000 || load.Hits > 150_000 {
		t.Errorf("%d hits, want 150,000 but for a part of a sample", load.Hits)
	}
	ledger := budget.New(DefaultBudget)
	if steps := ledger.Round(budgetPeriod, 50*time.Millisecond, []budget.Load{load}); len(steps) > 0 {
		t.Errorf("it takes 0.6 ms of 1 ms, and yet %+v", steps)
	}
}
