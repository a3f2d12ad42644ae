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
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

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
	out  *recording.Writer
	wake chan struct{} // signalled when there is something to do
	done chan struct{} // closed when the goroutine has ended

	mu      sync.Mutex // guards what follows
	queue   [][]byte
	bytes   int
	at      int64 // of the last frame
	dropped uint64
	closed  bool
	err     error
}

// New begins a recording on w, which stays the caller's to close. The first
// frame must be a header.
func New(w io.Writer) (*Recorder, error) {
	out, err := recording.NewWriter(w)
	if err != nil {
		return nil, err
	}
	r := &Recorder{out: out, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go r.run()
	return r, nil
}

// Take queues a frame; it does not wait, and keeps nothing of it.
func (r *Recorder) Take(f *attunev1.RecordingFrame) {
	data, err := recording.Encode(f)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closed || r.err != nil:
		return
	case err != nil:
		r.fail(err)
		return
	case measured(f) && r.bytes+len(data) > dataBytes:
		r.dropped++
		return
	case r.bytes+len(data) > allBytes:
		r.fail(errFull)
		return
	}
	r.queue, r.bytes, r.at = append(r.queue, data), r.bytes+len(data), f.GetAtNanos()
	r.signal()
}

// measured says whether a frame is one of those of which there are many.
func measured(f *attunev1.RecordingFrame) bool {
	return f.GetSamples() != nil || f.GetAggregates() != nil || f.GetRecords() != nil
}

// fail ends the recording. The caller holds mu.
func (r *Recorder) fail(err error) {
	r.err = err
	r.queue, r.bytes = nil, 0
	r.signal()
}

func (r *Recorder) signal() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Close writes what is queued and the end. It returns how many frames with
// measured data are missing, and what went wrong. It waits for the file at most
// for the given time; one that takes longer is cut off.
func (r *Recorder) Close(patience time.Duration) (dropped uint64, err error) {
	r.mu.Lock()
	r.closed = true
	r.signal()
	r.mu.Unlock()
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
	return r.dropped, err
}

// run writes until Close.
func (r *Recorder) run() {
	defer close(r.done)
	var flushed time.Time // never: the header is flushed at once
	for {
		frames, last := r.take()
		err := r.write(frames)
		if err == nil && !last && time.Since(flushed) >= flushEvery {
			err = r.out.Flush()
			flushed = time.Now()
		}
		if last {
			r.finish(err)
			return
		}
		if err != nil {
			r.mu.Lock()
			r.fail(err)
			r.mu.Unlock()
		}
	}
}

// take waits for frames and takes all that there are. last says that no more
// follow.
func (r *Recorder) take() (frames [][]byte, last bool) {
	<-r.wake
	r.mu.Lock()
	defer r.mu.Unlock()
	frames, r.queue, r.bytes = r.queue, nil, 0
	return frames, r.closed
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
func (r *Recorder) finish(err error) {
	r.mu.Lock()
	if r.err != nil {
		err = r.err
	}
	end := &attunev1.RecordingFrame{AtNanos: r.at, What: &attunev1.RecordingFrame_End{
		End: &attunev1.RecordingEnd{Dropped: r.dropped},
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
