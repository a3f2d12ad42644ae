// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/attune-hpc/attune/controller/bpf/uprobe"
	"github.com/attune-hpc/attune/controller/member"
	"github.com/attune-hpc/attune/controller/shm"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	// reclaimPause follows a look for threads that died without closing their
	// slot: it reads a file per thread, and a process may keep most slots in use.
	reclaimPause = time.Second
	// maxHeld bounds the batches that wait for their process to be told of.
	maxHeld = 64
)

// losses are records of a process that were lost in its rings, in that of the
// kernel's probes, and in the queue of the event channel.
type losses struct{ ring, bpf, queue uint64 }

// records takes records out of the rings and hands them on. Whoever drains rings
// must not wait for the Analyzer, and nobody holds the mutex who does: what finds
// no room is lost, and counted.
type records struct {
	members *member.Set
	account *account
	clock   *shm.Clock
	offer   func(*attunev1.PublishRequest) bool
	log     *slog.Logger

	mu      sync.Mutex // guards what follows; held while one process is drained
	drainer *shm.Drainer
	of      member.Keep[recorded]
}

// recorded is what is known of the records of one member.
type recorded struct {
	lost      losses         // in rings
	untold    losses         // those that no batch has told of yet
	held      []uprobe.Batch // until the Analyzer is told of it for the first time
	reclaimed time.Time      // when its slots were last reclaimed
	hits      counts         // of points, since the budget looked last
}

// drain moves the records of all processes to the event channel and returns
// how many there were.
func (r *records) drain() (n uint64) {
	for _, t := range r.members.List() {
		n += r.drainTarget(t)
	}
	return n
}

// drainTarget moves one process' records.
func (r *records) drainTarget(t *member.Member) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	memory := t.Memory()
	if memory == nil {
		return 0
	}
	var batches [][]byte
	got := memory.Drain(r.drainer, func(batch []byte) {
		batches = append(batches, slices.Clone(batch)) // the message owns its bytes
	})
	if got.CorruptSlots > 0 {
		r.log.Warn("memory shared with a process is damaged: threads are not measured any more",
			"pid", t.PID(), "threads", got.CorruptSlots)
	}
	lost := got.Lost + got.Corrupt + got.Unmapped // of points that have gone meanwhile
	r.account.add(totals{lostRing: lost})
	r.of.Of(t).lose(losses{ring: lost})
	for _, batch := range batches {
		r.send(t, batch)
	}
	if r.of.Of(t).untold != (losses{}) {
		r.send(t, nil)
	}
	if of, now := r.of.Of(t), time.Now(); got.FewSlotsFree && now.Sub(of.reclaimed) >= reclaimPause {
		of.reclaimed = now
		memory.Reclaim(func(tids []int) []int { return endedThreads(t.PID(), tids) })
	}
	return got.Received
}

// takeUprobed passes on what the kernel recorded of a process. The Analyzer is to
// be told of the process first: until then it is held, and the caller, who is told
// so, sees to the news.
func (r *records) takeUprobed(t *member.Member, batch uprobe.Batch) (held bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	batch.Records = slices.Clone(batch.Records) // the message owns its bytes
	of := r.of.Of(t)
	switch {
	case !t.Alive():
		r.account.add(totals{lostBPF: batch.Hits})
	case t.Known():
		r.sendUprobed(t, batch)
	case len(of.held) == maxHeld:
		r.loseUprobed(of, batch)
	default:
		of.held = append(of.held, batch)
		return true
	}
	return false
}

// release passes on what was held of a process that the Analyzer knows by now.
func (r *records) release(t *member.Member) {
	r.mu.Lock()
	defer r.mu.Unlock()
	of := r.of.Of(t)
	for _, batch := range of.held {
		r.sendUprobed(t, batch)
	}
	of.held = nil
}

// holds says whether records of a process wait for its news.
func (r *records) holds(t *member.Member) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.of.Of(t).held) > 0
}

// sendUprobed passes on a batch of the kernel's. The caller holds mu.
func (r *records) sendUprobed(t *member.Member, batch uprobe.Batch) {
	r.of.Of(t).lose(losses{bpf: batch.Lost})
	r.send(t, batch.Records)
}

// loseUprobed counts a batch that was held for too long. The caller holds mu.
func (r *records) loseUprobed(of *recorded, batch uprobe.Batch) {
	n := attunev1.CountRecords(batch.Records)
	of.lose(losses{bpf: batch.Lost})
	of.untold = of.untold.plus(losses{queue: n})
	r.account.add(totals{lostQueue: n})
}

func (l losses) plus(more losses) losses {
	return losses{ring: l.ring + more.ring, bpf: l.bpf + more.bpf, queue: l.queue + more.queue}
}

// lose counts records that were lost in rings.
func (o *recorded) lose(more losses) {
	o.lost, o.untold = o.lost.plus(more), o.untold.plus(more)
}

// returned takes a batch back that did not reach the Analyzer: the next one of its
// process tells of it.
func (r *records) returned(b *attunev1.RecordBatch) {
	n := b.GetRecordCount()
	r.account.add(totals{lostQueue: n})
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := r.members.Get(b.GetProcess()); t != nil {
		of := r.of.Of(t)
		of.untold = of.untold.plus(losses{ring: b.GetLostRing(), bpf: b.GetLostBpf(), queue: b.GetLostQueue() + n})
	}
}

// send queues a batch that tells of what was lost before it. What finds no room
// is lost too. The caller holds mu.
func (r *records) send(t *member.Member, packed []byte) {
	of := r.of.Of(t)
	n := of.hits.addRecords(packed)
	u := of.untold
	sent := r.offer(&attunev1.PublishRequest{Event: &attunev1.PublishRequest_Records{
		Records: &attunev1.RecordBatch{
			Process: t.Handle(), Records: packed, RecordCount: n, LostRing: u.ring, LostQueue: u.queue, LostBpf: u.bpf,
			MonotonicToUnixNano: r.clock.Scale().UnixOffset().Nanoseconds(),
		},
	}})
	if sent {
		of.untold = losses{}
		return
	}
	r.account.add(totals{lostQueue: n})
	of.untold.queue += n
}

// finish moves what is left of a process that has ended, and fills in what it lost.
// What no batch has told of yet is the caller's to publish; nil: nothing.
func (r *records) finish(t *member.Member, ended *attunev1.ProcessEnded) (untold *attunev1.PublishRequest) {
	r.drainTarget(t)
	r.mu.Lock()
	defer r.mu.Unlock()
	of := r.of.Of(t)
	for _, batch := range of.held { // there is no Analyzer
		r.loseUprobed(of, batch)
	}
	ended.LostRing, ended.LostBpf = of.lost.ring, of.lost.bpf
	u := of.untold
	of.held, of.untold = nil, losses{}
	if u == (losses{}) {
		return nil
	}
	return &attunev1.PublishRequest{Event: &attunev1.PublishRequest_Records{
		Records: &attunev1.RecordBatch{Process: t.Handle(), LostRing: u.ring, LostQueue: u.queue, LostBpf: u.bpf},
	}}
}

// countAggregates adds what was summed up to what the budget knows.
func (r *records) countAggregates(aggregates []*attunev1.Aggregate) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range aggregates {
		if t := r.members.Get(a.GetProcess()); t != nil {
			r.of.Of(t).hits.add(a.GetPoint(), counted{hits: a.GetCount() + a.GetUnreadable()})
		}
	}
}

// takeHits returns what was counted of a process since the last call, by point.
func (r *records) takeHits(t *member.Member) counts {
	r.mu.Lock()
	defer r.mu.Unlock()
	of := r.of.Of(t)
	hits := of.hits
	of.hits = nil
	return hits
}
