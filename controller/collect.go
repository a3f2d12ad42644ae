// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/attune-hpc/attune/controller/bpf"
	"github.com/attune-hpc/attune/controller/ring"
	"github.com/attune-hpc/attune/internal/hits"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// totals is what was received and lost so far.
type totals struct {
	records, lostRing, lostSlot uint64
	probeNanos                  float64
}

// losses are records that were lost in a process' rings, in that of the kernel's
// probes, and in the queue of the event channel.
type losses struct{ ring, bpf, queue uint64 }

// collector takes records and aggregates out of the processes' memory. Its
// mutex is held while one process is drained, so that what is left of a
// process that ends is delivered once and before its end.
type collector struct {
	controller *Controller
	clock      *ring.Clock

	lostLate atomic.Uint64 // records of uprobes that came after their process was gone

	mu       sync.Mutex // guards what follows
	drainer  *ring.Drainer
	scratch  []ring.Aggregate
	uprobed  map[uprobeKey]bpf.Aggregate  // last reading, for differences
	lost     map[uint64]losses            // in rings, by process handle
	untold   map[uint64]losses            // those that no batch has told of yet
	reclaims map[uint64]time.Time         // when slots of a process were last reclaimed
	hits     map[uint64]map[uint16]uint64 // of processes and points, since the budget looked last
	total    totals
	began    time.Time     // the running interval of aggregates
	interval time.Duration // how long one is to be, 0: they are not closed
	closing  due           // the running one
}

func newCollector(c *Controller) *collector {
	clock := ring.NewClock()
	if err := clock.SourceProblem(); err != nil {
		c.log.Info("times of records may be wrong", "reason", err)
	}
	return &collector{
		controller: c, clock: clock, drainer: ring.NewDrainer(clock),
		uprobed: make(map[uprobeKey]bpf.Aggregate), lost: make(map[uint64]losses), untold: make(map[uint64]losses),
		reclaims: make(map[uint64]time.Time), hits: make(map[uint64]map[uint16]uint64), began: time.Now(),
	}
}

// drain moves the records of all processes to the event channel and returns
// how many there were.
func (k *collector) drain() (records uint64) {
	for _, t := range k.controller.targets.list() {
		k.mu.Lock()
		records += k.drainTarget(t)
		k.mu.Unlock()
	}
	return records
}

// drainTarget moves one process' records. The caller holds k.mu.
func (k *collector) drainTarget(t *target) uint64 {
	memory := t.memory.Load()
	if memory == nil {
		return 0
	}
	var batches [][]byte
	got := memory.Drain(k.drainer, func(batch []byte) {
		batches = append(batches, slices.Clone(batch)) // the message owns its bytes
	})
	if got.CorruptSlots > 0 {
		k.controller.log.Warn("memory shared with a process is damaged: threads are not measured any more",
			"pid", t.pid, "threads", got.CorruptSlots)
	}
	k.total.records += got.Received
	k.total.lostRing += got.Lost + got.Corrupt
	k.lose(t.handle, losses{ring: got.Lost + got.Corrupt})
	for _, batch := range batches {
		k.send(t.handle, batch)
	}
	if k.untold[t.handle] != (losses{}) {
		k.send(t.handle, nil)
	}
	if now := time.Now(); got.FewSlotsFree && now.Sub(k.reclaims[t.handle]) >= reclaimPause {
		k.reclaims[t.handle] = now
		memory.Reclaim(threadAlive(t.pid))
	}
	return got.Received
}

// reclaimPause follows a look for threads that died without closing their
// slot: it reads a file per thread, and a process may keep most slots in use.
const reclaimPause = time.Second

// lose counts records of a process that were lost in rings. The caller holds k.mu.
func (k *collector) lose(handle uint64, more losses) {
	if more == (losses{}) {
		return
	}
	for _, sums := range []map[uint64]losses{k.lost, k.untold} {
		sum := sums[handle]
		sum.ring += more.ring
		sum.bpf += more.bpf
		sums[handle] = sum
	}
}

// send queues a batch that tells of what was lost before it. What finds no room
// is lost too. The caller holds k.mu.
func (k *collector) send(handle uint64, records []byte) {
	u := k.untold[handle]
	n := k.countRecords(handle, records)
	sent := k.controller.client.TryPublish(&attunev1.PublishRequest{Event: &attunev1.PublishRequest_Records{
		Records: &attunev1.RecordBatch{
			Process: handle, Records: records, RecordCount: n, LostRing: u.ring, LostQueue: u.queue, LostBpf: u.bpf,
			MonotonicToUnixNano: k.clock.Scale().UnixOffset().Nanoseconds(),
		},
	}}, n)
	if sent {
		delete(k.untold, handle)
		return
	}
	u.queue += n
	k.untold[handle] = u
}

// tell tells of what was lost of a process that has no more records, however
// full the queue is. The caller holds k.mu.
func (k *collector) tell(handle uint64) {
	u := k.untold[handle]
	delete(k.untold, handle)
	if u == (losses{}) {
		return
	}
	k.controller.publish(&attunev1.PublishRequest{Event: &attunev1.PublishRequest_Records{
		Records: &attunev1.RecordBatch{Process: handle, LostRing: u.ring, LostQueue: u.queue, LostBpf: u.bpf},
	}})
}

// setInterval says how long intervals of aggregates are from now on; 0: they are not
// closed. When it has returned, none is closed by what was said before.
func (k *collector) setInterval(length time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.interval = length
}

// closeDue closes the running interval if it is time, and returns when it will be;
// the zero time: never.
func (k *collector) closeDue(now time.Time) time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closing.is(now, k.interval) {
		k.aggregate()
	}
	return k.closing.next
}

// aggregate closes the running interval and delivers what was counted in it. The
// caller holds k.mu.
func (k *collector) aggregate() {
	batch := &attunev1.AggregateBatch{FromUnixNano: k.began.UnixNano()}
	for _, t := range k.controller.targets.list() {
		batch.Aggregates = append(batch.Aggregates, k.aggregateTarget(t)...)
	}
	batch.Aggregates = append(batch.Aggregates, k.aggregateUprobes()...)
	k.began = time.Now()
	batch.ToUnixNano = k.began.UnixNano()
	k.deliver(batch)
}

func (k *collector) deliver(batch *attunev1.AggregateBatch) {
	k.countAggregates(batch.GetAggregates())
	if len(batch.GetAggregates()) > 0 {
		k.controller.publish(&attunev1.PublishRequest{Event: &attunev1.PublishRequest_Aggregates{Aggregates: batch}})
	}
}

// sumKey names what is summed up apart in one process.
type sumKey struct {
	point uint16
	key   hits.Key
}

// aggregateTarget sums, by point and key, what the hooks and stubs of one process
// counted. The caller holds k.mu.
func (k *collector) aggregateTarget(t *target) []*attunev1.Aggregate {
	memory := t.memory.Load()
	if memory == nil {
		return nil
	}
	k.scratch = memory.Aggregates(k.scratch[:0], k.clock.Scale())
	costs := k.controller.placer.Costs(t.handle)
	sums := make(map[sumKey]*hits.Sum)
	var order []sumKey
	for i := range k.scratch {
		local := &k.scratch[i]
		key := sumKey{local.Point, hits.Key{Value: local.Key, Has: local.HasKey}}
		if sums[key] == nil {
			sums[key] = &hits.Sum{Signed: local.Signed}
			order = append(order, key)
		}
		sums[key].Merge(&hits.Sum{
			Count: local.Count, Unreadable: local.Unreadable, Total: local.Sum, Histogram: local.Histogram[:],
			Least: local.Min, Greatest: local.Max, Bounded: hits.Bounded(local.Count, local.Sum, local.Min, local.Max),
		})
		k.total.probeNanos += float64(local.Count) * costs[local.Point]
	}
	out := make([]*attunev1.Aggregate, 0, len(order))
	for _, key := range order {
		out = append(out, sums[key].Aggregate(uint32(key.point), t.handle, key.key))
	}
	return out
}

// leave delivers what points have recorded and counted in a process that they
// are about to be taken out of. What DMLib counted at the others comes with it:
// its intervals end for all at once.
func (k *collector) leave(handle uint64, points ...uint16) {
	k.controller.flushUprobes()
	k.mu.Lock()
	defer k.mu.Unlock()
	batch := &attunev1.AggregateBatch{
		FromUnixNano: k.began.UnixNano(), ToUnixNano: time.Now().UnixNano(),
		Aggregates: k.lastOfUprobes(handle, func(p uint16) bool { return slices.Contains(points, p) }),
	}
	if t := k.controller.targets.get(handle); t != nil {
		k.drainTarget(t)
		batch.Aggregates = append(batch.Aggregates, k.aggregateTarget(t)...)
	}
	k.deliver(batch)
}

// finish delivers what is left of a process that has ended, and fills in what
// it lost.
func (k *collector) finish(t *target, ended *attunev1.ProcessEnded) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.drainTarget(t)
	ended.LostRing, ended.LostBpf = k.lost[t.handle].ring, k.lost[t.handle].bpf
	delete(k.lost, t.handle)
	k.tell(t.handle)
	delete(k.reclaims, t.handle)
	delete(k.hits, t.handle)
	rest := &attunev1.AggregateBatch{
		FromUnixNano: k.began.UnixNano(), ToUnixNano: time.Now().UnixNano(),
		Aggregates: k.lastOfUprobes(t.handle, func(uint16) bool { return true }),
	}
	if memory := t.memory.Load(); memory != nil {
		ended.LostNoSlot = memory.App().LostNoSlot
		k.total.lostSlot += ended.GetLostNoSlot()
		rest.Aggregates = append(rest.Aggregates, k.aggregateTarget(t)...)
	}
	k.deliver(rest)
	// The readings of uprobes stay until the placer has let go of the process: a
	// withdrawal may ask once more, and all would be delivered again.
}

// sums returns the account so far, with the losses of living processes.
func (k *collector) sums() totals {
	k.mu.Lock()
	defer k.mu.Unlock()
	total := k.total
	for _, t := range k.controller.targets.list() {
		if memory := t.memory.Load(); memory != nil {
			total.lostSlot += memory.App().LostNoSlot
		}
	}
	return total
}
