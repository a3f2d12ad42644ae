// SPDX-License-Identifier: Apache-2.0

package uprobe

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/attune-hpc/attune/internal/queue"
)

// Batch is records of one process, in the order of the ring.
type Batch struct {
	// Process that hit them.
	Process uint32
	// Records in the form of RecordBatch.records of the protocol; their time is
	// CLOCK_MONOTONIC in nanoseconds, their thread in the controller's pid
	// namespace.
	Records []byte
	// Hits is the number of records, continuations not counted.
	Hits uint64
	// Lost is what Aggregate.Lost counts of the process, since its last batch. A batch may
	// consist of that alone.
	Lost uint64
}

const (
	// maxBatch bounds how many records are taken before they are handed over.
	maxBatch = 1024
	// The ring is polled this often: a wake-up per record would cost the
	// application 5 us.
	pollBusy = time.Millisecond
	pollIdle = 8 * time.Millisecond
)

// recorder hands over the records of points that deliver them. Its methods may be
// called from any goroutine unless they say otherwise.
type recorder struct {
	ring       recordRing
	watches    *watchTable
	done       chan struct{}         // closed by Close
	delivering atomic.Int32          // points that deliver records, until the kernel has detached them
	begun      queue.Bell            // rung by the first of these
	drain      atomic.Pointer[drain] // of Run
}

// begin notes a point that delivers records.
func (r *recorder) begin() {
	if r.delivering.Add(1) == 1 {
		r.begun.Ring()
	}
}

// end notes that the kernel has detached one.
func (r *recorder) end() { r.delivering.Add(-1) }

// Run hands over records in batches, until ctx ends or Close is called (nil
// both). What is in the ring when ctx ends is handed over first. Batches are
// reused: handle must not keep one. One Run at a time. It polls only while some
// point delivers records.
func (r *recorder) Run(ctx context.Context, handle func(Batch)) error {
	drain := &drain{ring: &r.ring, watches: r.watches, handle: handle, batches: make(map[uint32]*Batch)}
	r.drain.Store(drain)
	defer drain.end()
	poll := time.NewTimer(0)
	defer poll.Stop()
	pause := pollBusy
	for {
		select {
		case <-r.done:
			return nil
		case <-ctx.Done():
			_, err := drain.once(context.Background())
			return err
		case <-r.begun:
		case <-poll.C:
		}
		recording := r.delivering.Load() > 0 // if not, the ring has the last of them
		n, err := drain.once(ctx)
		if err != nil {
			return err
		}
		pause = min(2*pause, pollIdle)
		if n > 0 {
			pause = pollBusy
		}
		if recording {
			poll.Reset(pause)
		}
	}
}

// Lost returns what Aggregate.Lost counts, of all processes.
func (r *recorder) Lost() uint64 { return r.ring.lost() }

// Flush hands over what is in the ring now, and returns when handle of Run has
// been called for all of it: what a process recorded that has just ended. It does
// nothing when there is no Run. It must not be called from handle.
func (r *recorder) Flush() error {
	if drain := r.drain.Load(); drain != nil {
		_, err := drain.once(context.Background())
		return err
	}
	return nil
}

// drain empties the ring into batches.
type drain struct {
	ring    *recordRing
	watches *watchTable
	handle  func(Batch)

	mu      sync.Mutex // guards what follows; held while handle is called
	ended   bool
	lost    uint64            // of the ring, when watches were looked at last
	overdue bool              // they have to be looked at once more
	batches map[uint32]*Batch // by process, reused
	touched []*Batch
	last    *Batch // of the record before: as a rule that of the next
}

// end makes sure that handle is not called any more.
func (d *drain) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = true
}

// once hands over what is in the ring, at most one ring's worth, and returns
// how many records that was.
func (d *drain) once(ctx context.Context) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	total := 0
	for ctx.Err() == nil && !d.ended {
		n, most, err := d.ring.read(maxBatch, d.take)
		total += n
		d.takeLost()
		d.deliver()
		if err != nil || n < maxBatch || total >= most {
			return total, err
		}
	}
	return total, nil
}

func (d *drain) take(process uint32, record []byte) {
	b := d.last
	if b == nil || b.Process != process {
		b = d.of(process)
	}
	if b.Hits == 0 {
		d.touched = append(d.touched, b)
	}
	b.Hits++
	b.Records = appendWire(b.Records, record)
}

// takeLost notes which processes have lost records. A program counts what is
// lost in all before it counts what its watch has lost, so that after the first
// has grown the others are looked at twice.
func (d *drain) takeLost() {
	lost := d.ring.lost()
	changed := lost != d.lost
	if !changed && !d.overdue {
		return
	}
	d.lost, d.overdue = lost, changed
	d.watches.takeLost(func(process uint32, lost uint64) {
		b := d.of(process)
		if b.Hits == 0 && b.Lost == 0 {
			d.touched = append(d.touched, b)
		}
		b.Lost += lost
	})
}

func (d *drain) of(process uint32) *Batch {
	b := d.batches[process]
	if b == nil {
		b = &Batch{Process: process}
		d.batches[process] = b
	}
	d.last = b
	return b
}

// maxIdleBatches bounds the buffers that are kept for processes, most of which
// may be gone.
const maxIdleBatches = 64

func (d *drain) deliver() {
	for _, b := range d.touched {
		d.handle(*b)
		b.Records, b.Hits, b.Lost = b.Records[:0], 0, 0
	}
	d.touched = d.touched[:0]
	if len(d.batches) > maxIdleBatches {
		clear(d.batches)
		d.last = nil
	}
}
