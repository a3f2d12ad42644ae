// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"log/slog"
	"testing"

	"github.com/attune-hpc/attune/controller/bpf/uprobe"
	"github.com/attune-hpc/attune/controller/member"
	"github.com/attune-hpc/attune/internal/testing/patience"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// rig is a Meter with one member, which is no process of this machine, and what it
// hands on.
type rig struct {
	*Meter
	member  *member.Member
	full    bool // the queue to the Analyzer
	offered []*attunev1.RecordBatch
	hurried int
}

func newRig(publish func(*attunev1.PublishRequest)) *rig {
	r := &rig{member: member.New(&attunev1.Process{
		Handle: 1, Identity: &attunev1.ProcessIdentity{Pid: 1 << 22},
	}, member.Options{})}
	members := member.NewSet()
	members.Add(r.member)
	r.Meter = New(Options{
		Members: members, Publish: publish, Hurry: func() { r.hurried++ }, Log: slog.New(slog.DiscardHandler),
		Offer: func(m *attunev1.PublishRequest) bool {
			if !r.full {
				r.offered = append(r.offered, m.GetRecords())
			}
			return !r.full
		},
	})
	return r
}

// records is what the kernel recorded of the member.
func (r *rig) records(n int) uprobe.Batch {
	return uprobe.Batch{Process: uint32(r.member.PID()), Records: make([]byte, n*attunev1.RecordSize), Hits: uint64(n)}
}

// TestSlowAnalyzer: rings are emptied and accounts are kept while aggregates wait
// for room.
func TestSlowAnalyzer(t *testing.T) {
	room, waits := make(chan struct{}), make(chan struct{})
	r := newRig(func(*attunev1.PublishRequest) {
		close(waits)
		<-room
	})
	delivered := make(chan struct{})
	go func() {
		defer close(delivered)
		r.aggregates.mu.Lock()
		defer r.aggregates.mu.Unlock()
		r.aggregates.deliver(&attunev1.AggregateBatch{Aggregates: []*attunev1.Aggregate{{Count: 3}}})
	}()
	<-waits
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Meter.records.drain()
		r.kernel.take(r.records(1))
		if _, err := r.Status(); err != nil {
			t.Error(err)
		}
	}()
	patience.Closed(t, "rings, beside aggregates that wait for room", done)
	close(room)
	<-delivered
}

// TestRecordsWaitForTheNews of their process, bounded, and come then in their order.
func TestRecordsWaitForTheNews(t *testing.T) {
	r := newRig(nil)
	for range maxHeld + 2 {
		r.kernel.take(r.records(3))
	}
	if len(r.offered) > 0 || r.hurried != maxHeld || !r.Holds(r.member) {
		t.Errorf("%d batches before the news, which were hurried %d times", len(r.offered), r.hurried)
	}
	r.member.Tell()
	r.Heard(r.member)
	if len(r.offered) != maxHeld || r.Holds(r.member) {
		t.Fatalf("%d batches after the news, want %d", len(r.offered), maxHeld)
	}
	if first := r.offered[0]; first.GetRecordCount() != 3 || first.GetLostQueue() != 6 {
		t.Errorf("the first batch is %v, want 3 records and 6 that found no room", first)
	}
	r.member.End()
	r.kernel.take(r.records(5))
	if total := r.account.sums(); total.lostQueue != 6 || total.lostBPF != 5 {
		t.Errorf("the account is %+v", total)
	}
}

// TestLostRecordsAreTold: with the next batch of their process, or at its end.
func TestLostRecordsAreTold(t *testing.T) {
	var published []*attunev1.PublishRequest
	r := newRig(func(m *attunev1.PublishRequest) { published = append(published, m) })
	r.member.Tell()
	r.full = true
	r.kernel.take(r.records(2))
	r.full = false
	r.Returned(&attunev1.RecordBatch{Process: 1, RecordCount: 7, Records: make([]byte, 7*attunev1.RecordSize), LostRing: 1, LostBpf: 2, LostQueue: 3})
	r.kernel.take(r.records(1))
	if b := r.offered[0]; b.GetLostRing() != 1 || b.GetLostBpf() != 2 || b.GetLostQueue() != 2+3+7 {
		t.Errorf("the next batch tells of %v", b)
	}
	r.Returned(&attunev1.RecordBatch{Process: 1, RecordCount: 1, Records: make([]byte, attunev1.RecordSize)})
	r.members.Remove(1)
	r.member.End()
	r.Finish(r.member, new(attunev1.ProcessEnded))
	r.Returned(&attunev1.RecordBatch{Process: 1, RecordCount: 1, Records: make([]byte, attunev1.RecordSize)})
	if len(published) != 1 || published[0].GetRecords().GetLostQueue() != 1 {
		t.Errorf("at the end it is told %v", published)
	}
	if lost := r.account.sums().lostQueue; lost != 2+7+1+1 {
		t.Errorf("%d records are lost in the account, want 11", lost)
	}
}
