// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"slices"
	"sync"
	"time"

	"github.com/attune-hpc/attune/controller/member"
	"github.com/attune-hpc/attune/controller/probe"
	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/internal/hits"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// aggregates takes what was counted out of the processes' memory and the kernel's.
type aggregates struct {
	members *member.Set
	account *account
	records *records
	kernel  *kernel
	clock   *shm.Clock
	placer  func() *probe.Placer
	publish func(*attunev1.PublishRequest) // waits for room

	// mu is held until what was read is with the Analyzer, so that it leaves in the
	// order in which it was counted, and before the end of its process. Whoever
	// drains rings must not wait for it. It comes before the mutex of records.
	mu       sync.Mutex
	scratch  []shm.Aggregate
	uprobed  *uprobed
	began    time.Time     // the running interval
	interval time.Duration // how long one is to be, 0: they are not closed
	closing  due           // the running one
}

// setInterval says how long intervals are from now on; 0: they are not closed. When
// it has returned, none is closed by what was said before.
func (k *aggregates) setInterval(length time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.interval = length
}

// closeDue closes the running interval if it is time, and returns when it will be;
// the zero time: never.
func (k *aggregates) closeDue(now time.Time) time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closing.is(now, k.interval) {
		k.close()
	}
	return k.closing.next
}

// close closes the running interval and delivers what was counted in it. The
// caller holds mu.
func (k *aggregates) close() {
	var counted []*attunev1.Aggregate
	for _, t := range k.members.List() {
		counted = append(counted, k.ofTarget(t)...)
	}
	counted = append(counted, k.uprobed.closed()...)
	now := time.Now()
	batch := k.batchUntil(now, counted)
	k.began = now
	k.deliver(batch)
}

// batchUntil returns a batch of what was counted in the running interval, which ends now. It
// is as long as the monotonic clock says: the time of day may be set meanwhile. All batches of
// an interval have the same beginning, by which they are known to belong together. The caller
// holds mu.
func (k *aggregates) batchUntil(now time.Time, counted []*attunev1.Aggregate) *attunev1.AggregateBatch {
	from := k.began.UnixNano()
	return &attunev1.AggregateBatch{FromUnixNano: from, ToUnixNano: from + int64(now.Sub(k.began)), Aggregates: counted}
}

// deliver waits until the Analyzer takes a batch. The caller holds mu.
func (k *aggregates) deliver(batch *attunev1.AggregateBatch) {
	k.records.countAggregates(batch.GetAggregates())
	if len(batch.GetAggregates()) > 0 {
		k.publish(&attunev1.PublishRequest{Event: &attunev1.PublishRequest_Aggregates{Aggregates: batch}})
	}
}

// sumKey names what is summed up apart in one process.
type sumKey struct {
	point uint16
	key   hits.Key
}

// ofTarget sums, by point and key, what the hooks and stubs of one process counted.
// The caller holds mu.
func (k *aggregates) ofTarget(t *member.Member) []*attunev1.Aggregate {
	memory := t.Memory()
	if memory == nil {
		return nil
	}
	k.scratch = memory.Aggregates(k.scratch[:0], k.clock.Scale())
	costs := k.placer().Costs(t.Handle())
	sums := make(map[sumKey]*hits.Sum)
	var order []sumKey
	var cost float64
	for i := range k.scratch {
		local := &k.scratch[i]
		key := sumKey{local.Point, hits.Key{Value: local.Key, Has: local.HasKey}}
		if sums[key] == nil {
			sums[key] = &hits.Sum{Signed: local.Signed}
			order = append(order, key)
		}
		sums[key].Merge(local.Values(local.Unreadable))
		cost += float64(local.Count) * costs[local.Point]
	}
	k.account.add(totals{probeNanos: cost})
	out := make([]*attunev1.Aggregate, 0, len(order))
	for _, key := range order {
		out = append(out, sums[key].Aggregate(uint32(key.point), t.Handle(), key.key))
	}
	return out
}

// leave delivers what points have recorded and counted in a process that they
// are about to be taken out of. What DMLib counted at the others comes with it:
// its intervals end for all at once.
func (k *aggregates) leave(handle uint64, points ...uint16) {
	k.kernel.flush()
	k.mu.Lock()
	defer k.mu.Unlock()
	batch := k.batchUntil(time.Now(), k.uprobed.rest(handle, func(p uint16) bool { return slices.Contains(points, p) }))
	if t := k.members.Get(handle); t != nil {
		k.records.drainTarget(t)
		batch.Aggregates = append(batch.Aggregates, k.ofTarget(t)...)
	}
	k.deliver(batch)
}

// finish delivers what is left of a process that has ended, and fills in what
// it lost.
func (k *aggregates) finish(t *member.Member, ended *attunev1.ProcessEnded) {
	k.mu.Lock()
	defer k.mu.Unlock()
	rest := k.batchUntil(time.Now(), k.uprobed.rest(t.Handle(), func(uint16) bool { return true }))
	if memory := t.Memory(); memory != nil {
		ended.LostNoSlot = memory.App().LostNoSlot
		k.account.add(totals{lostSlot: ended.GetLostNoSlot()})
		rest.Aggregates = append(rest.Aggregates, k.ofTarget(t)...)
	}
	if untold := k.records.finish(t, ended); untold != nil {
		k.publish(untold)
	}
	k.deliver(rest)
	// The readings of uprobes stay until the placer has let go of the process: a
	// withdrawal may ask once more, and all would be delivered again.
}
