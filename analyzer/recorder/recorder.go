// SPDX-License-Identifier: Apache-2.0

// Package recorder writes down what a session sees and does, beside it: the
// session never waits for a disk. What does not fit into the bounded queue is
// dropped if it is measured data, and counted in the recording; everything else
// is rare, and a queue full of that ends the recording.
//
// A Recorder has one goroutine of its own, which Close waits for. Its mutex is a
// leaf lock.
package recorder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/attune-hpc/attune/internal/queue"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/sdk/recording"
)

const (
	// dataBytes bounds the frames that wait, if one with measured data is to join
	// them, allBytes if one with anything else is.
	dataBytes = 16 << 20
	allBytes  = 24 << 20
	// flushEvery is how much at most is missing from what a killed process
	// leaves.
	flushEvery = time.Second
)

var errFull = errors.New("it could not be written as fast as things happened")

// Recorder writes one recording. Its methods are safe for use by several
// goroutines.
type Recorder struct {
	out   *recording.Writer
	queue *queue.Queue[[]byte] // encoded frames
	done  chan struct{}        // closed when the goroutine has ended

	mu  sync.Mutex // guards what follows, and that frames are queued in the order of their times
	at  int64      // of the last frame
	err error
}

// New begins a recording on w, which stays the caller's to close. The first
// frame must be a header.
func New(w io.Writer) (*Recorder, error) {
	out, err := recording.NewWriter(w)
	if err != nil {
		return nil, err
	}
	r := &Recorder{
		out: out, queue: queue.NewWeighted(allBytes, func(frame []byte) int64 { return int64(len(frame)) }),
		done: make(chan struct{}),
	}
	go r.run()
	return r, nil
}

// Take queues a frame; it does not wait, and keeps nothing of it.
func (r *Recorder) Take(f *attunev1.RecordingFrame) {
	data, err := recording.Encode(f)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.err != nil || r.queue.Closed():
		return
	case err != nil:
		r.fail(err)
		return
	case measured(f):
		if !r.queue.OfferWithin(data, dataBytes) {
			return
		}
	case !r.queue.Offer(data):
		r.fail(errFull)
		return
	}
	r.at = f.GetAtNanos()
}

// measured says whether a frame is one of those of which there are many.
func measured(f *attunev1.RecordingFrame) bool {
	return f.GetSamples() != nil || f.GetAggregates() != nil || f.GetRecords() != nil
}

// fail ends the recording. The caller holds mu.
func (r *Recorder) fail(err error) {
	r.err = err
	r.queue.Drain()
}

// Close writes what is queued and the end. It returns how many frames with
// measured data are missing, and what went wrong. It waits for the file at most
// for the given time; one that takes longer is cut off.
func (r *Recorder) Close(patience time.Duration) (dropped uint64, err error) {
	r.queue.Close()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-r.done:
	case <-timer.C:
		err = errFull
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		err = r.err
	}
	return r.queue.Dropped(), err
}

// run writes until Close.
func (r *Recorder) run() {
	defer close(r.done)
	var flushed time.Time // never: the header is flushed at once
	for {
		frames, err := r.queue.TakeAll(context.Background())
		if err != nil { // it is closed
			r.finish()
			return
		}
		err = r.write(frames)
		if err == nil && time.Since(flushed) >= flushEvery {
			err = r.out.Flush()
			flushed = time.Now()
		}
		if err != nil {
			r.mu.Lock()
			r.fail(err)
			r.mu.Unlock()
		}
	}
}

func (r *Recorder) write(frames [][]byte) error {
	for _, f := range frames {
		if err := r.out.WriteEncoded(f); err != nil {
			return err
		}
	}
	return nil
}

// finish writes the end, unless something went wrong before.
func (r *Recorder) finish() {
	r.mu.Lock()
	err := r.err
	end := &attunev1.RecordingFrame{AtNanos: r.at, What: &attunev1.RecordingFrame_End{
		End: &attunev1.RecordingEnd{Dropped: r.queue.Dropped()},
	}}
	r.mu.Unlock()
	if err == nil {
		err = r.out.Write(end)
	}
	if closed := r.out.Close(); err == nil {
		err = closed
	}
	r.mu.Lock()
	r.err = err
	r.mu.Unlock()
}

// Problem says in a sentence what is wrong with a recording, given what Close
// returned; empty: nothing.
func Problem(dropped uint64, err error) string {
	switch {
	case err != nil:
		return fmt.Sprintf("the recording ends early: %v", err)
	case dropped > 0:
		return fmt.Sprintf("the recording lacks %d batches of measured data: its disk was too slow", dropped)
	}
	return ""
}
