// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"sync"
	"time"

	"github.com/attune-hpc/attune/controller/bpf/uprobe"
	"github.com/attune-hpc/attune/controller/member"
	"github.com/attune-hpc/attune/controller/ring"
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
	controller *Controller

	mu       sync.Mutex // guards what follows; held while one process is drained
	drainer  *ring.Drainer
	lost     map[uint64]losses            // in rings, by process handle
	untold   map[uint64]losses            // those that no batch has told of yet
	held     map[uint64][]uprobe.Batch    // of processes that the Analyzer was never told of
	reclaims map[uint64]time.Time         // when slots of a process were last reclaimed
	hits     map[uint64]map[uint16]uint64 // of processes and points, since the budget looked last
}

func newRecords(c *Controller) *records {
	return &records{
		controller: c, drainer: ring.NewDrainer(c.clock),
		lost: make(map[uint64]losses), untold: make(map[uint64]losses), held: make(map[uint64][]uprobe.Batch),
		reclaims: make(map[uint64]time.Time), hits: make(map[uint64]map[uint16]uint64),
	}
}

// drain moves the records of all processes to the event channel and returns
// how many there were.
func (r *records) drain() (n uint64) {
	for _, t := range r.controller.members.List() {
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
		r.controller.log.Warn("memory shared with a process is damaged: threads are not measured any more",
			"pid", t.PID(), "threads", got.CorruptSlots)
	}
	r.controller.account.add(totals{records: got.Received, lostRing: got.Lost + got.Corrupt})
	r.lose(t.Handle(), losses{ring: got.Lost + got.Corrupt})
	for _, batch := range batches {
		r.send(t.Handle(), batch)
	}
	if r.untold[t.Handle()] != (losses{}) {
		r.send(t.Handle(), nil)
	}
	if now := time.Now(); got.FewSlotsFree && now.Sub(r.reclaims[t.Handle()]) >= reclaimPause {
		r.reclaims[t.Handle()] = now
		memory.Reclaim(threadAlive(t.PID()))
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
	switch {
	case !t.Alive():
		r.controller.account.add(totals{lostBPF: batch.Hits})
	case t.Known():
		r.sendUprobed(t.Handle(), batch)
	case len(r.held[t.Handle()]) == maxHeld:
		r.loseUprobed(t.Handle(), batch)
	default:
		r.held[t.Handle()] = append(r.held[t.Handle()], batch)
		return true
	}
	return false
}

// release passes on what was held of a process that the Analyzer knows by now.
func (r *records) release(t *member.Member) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, batch := range r.held[t.Handle()] {
		r.sendUprobed(t.Handle(), batch)
	}
	delete(r.held, t.Handle())
}

// holds says whether records of a process wait for its news.
func (r *records) holds(t *member.Member) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.held[t.Handle()]) > 0
}

// sendUprobed passes on a batch of the kernel's. The caller holds mu.
func (r *records) sendUprobed(handle uint64, batch uprobe.Batch) {
	r.lose(handle, losses{bpf: batch.Lost})
	r.send(handle, batch.Records)
}

// loseUprobed counts a batch that was held for too long. The caller holds mu.
func (r *records) loseUprobed(handle uint64, batch uprobe.Batch) {
	n := attunev1.CountRecords(batch.Records)
	r.lose(handle, losses{bpf: batch.Lost})
	r.loseQueued(handle, losses{queue: n})
	r.controller.account.add(totals{lostQueue: n})
}

// lose counts records of a process that were lost in rings. The caller holds mu.
func (r *records) lose(handle uint64, more losses) {
	if more == (losses{}) {
		return
	}
	for _, sums := range []map[uint64]losses{r.lost, r.untold} {
		sum := sums[handle]
		sum.ring += more.ring
		sum.bpf += more.bpf
		sums[handle] = sum
	}
}

// loseQueued counts records that were lost on the way to the Analyzer, with what
// their batch told. The caller holds mu.
func (r *records) loseQueued(handle uint64, more losses) {
	u := r.untold[handle]
	r.untold[handle] = losses{ring: u.ring + more.ring, bpf: u.bpf + more.bpf, queue: u.queue + more.queue}
}

// returned takes a batch back that did not reach the Analyzer: the next one of its
// process tells of it.
func (r *records) returned(b *attunev1.RecordBatch) {
	n := attunev1.RecordsIn(b)
	r.controller.account.add(totals{lostQueue: n})
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.controller.members.Get(b.GetProcess()) != nil {
		r.loseQueued(b.GetProcess(), losses{ring: b.GetLostRing(), bpf: b.GetLostBpf(), queue: b.GetLostQueue() + n})
	}
}

// send queues a batch that tells of what was lost before it. What finds no room
// is lost too. The caller holds mu.
func (r *records) send(handle uint64, packed []byte) {
	u := r.untold[handle]
	n := r.countRecords(handle, packed)
	sent := r.controller.client.TryPublish(&attunev1.PublishRequest{Event: &attunev1.PublishRequest_Records{
		Records: &attunev1.RecordBatch{
			Process: handle, Records: packed, RecordCount: n, LostRing: u.ring, LostQueue: u.queue, LostBpf: u.bpf,
			MonotonicToUnixNano: r.controller.clock.Scale().UnixOffset().Nanoseconds(),
		},
	}})
	if sent {
		delete(r.untold, handle)
		return
	}
	r.controller.account.add(totals{lostQueue: n})
	u.queue += n
	r.untold[handle] = u
}

// finish moves what is left of a process that has ended, fills in what it lost, and
// forgets it. What no batch has told of yet is the caller's to publish; nil:
// nothing.
func (r *records) finish(t *member.Member, ended *attunev1.ProcessEnded) (untold *attunev1.PublishRequest) {
	r.drainTarget(t)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, batch := range r.held[t.Handle()] { // there is no Analyzer
		r.loseUprobed(t.Handle(), batch)
	}
	ended.LostRing, ended.LostBpf = r.lost[t.Handle()].ring, r.lost[t.Handle()].bpf
	u := r.untold[t.Handle()]
	delete(r.lost, t.Handle())
	delete(r.untold, t.Handle())
	delete(r.held, t.Handle())
	delete(r.reclaims, t.Handle())
	delete(r.hits, t.Handle())
	if u == (losses{}) {
		return nil
	}
	return &attunev1.PublishRequest{Event: &attunev1.PublishRequest_Records{
		Records: &attunev1.RecordBatch{Process: t.Handle(), LostRing: u.ring, LostQueue: u.queue, LostBpf: u.bpf},
	}}
}
