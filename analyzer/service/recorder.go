// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"log/slog"
	"sync"
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	// recordPatience is how long the registry may take for one record, and
	// recordPause lies between attempts.
	recordPatience = 2 * time.Second
	recordPause    = time.Second
	// maxRecords bounds those that wait for a registry that is away: ten
	// megabytes or so.
	maxRecords = 10_000
)

// recorder puts the records of sessions into the registry, the newest of each,
// for as long as that takes: nobody waits for a registry that is away. What is too
// much is dropped, the oldest first, and counted.
type recorder struct {
	send func(context.Context, *attunev1.SessionRecord) error
	log  *slog.Logger
	wake chan struct{}

	mu      sync.Mutex
	pending map[string]*attunev1.SessionRecord
	order   []string
	failing bool // it has been said that the registry does not take them
	dropped int  // since the registry took the last one
}

func newRecorder(send func(context.Context, *attunev1.SessionRecord) error, log *slog.Logger) *recorder {
	return &recorder{send: send, log: log, wake: make(chan struct{}, 1), pending: make(map[string]*attunev1.SessionRecord)}
}

// put has a record sent, which must not be changed any more.
func (r *recorder) put(record *attunev1.SessionRecord) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pending[record.GetId()] == nil {
		r.order = append(r.order, record.GetId())
	}
	r.pending[record.GetId()] = record
	r.bound()
	signal(r.wake)
}

// bound drops what is too much. The caller holds mu.
func (r *recorder) bound() {
	for len(r.order) > maxRecords {
		delete(r.pending, r.order[0])
		r.order = r.order[1:]
		r.dropped++
	}
}

// run sends until ctx ends.
func (r *recorder) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		}
		for !r.flush(ctx) {
			if !pause(ctx, recordPause) {
				return
			}
		}
	}
}

// flush sends what is pending. It returns false if that failed.
func (r *recorder) flush(ctx context.Context) bool {
	for {
		record := r.take()
		if record == nil {
			return true
		}
		if err := r.sendOne(ctx, record); err != nil {
			r.giveBack(record)
			return false
		}
	}
}

func (r *recorder) sendOne(ctx context.Context, record *attunev1.SessionRecord) error {
	ctx, cancel := context.WithTimeout(ctx, recordPatience)
	defer cancel()
	err := r.send(ctx, record)
	r.mu.Lock()
	said, dropped := r.failing, r.dropped
	if r.failing = err != nil; !r.failing {
		r.dropped = 0
	}
	r.mu.Unlock()
	switch {
	case err != nil && !said:
		r.log.Warn("registry does not take records of sessions; it is tried again", "error", err)
	case err == nil && said:
		r.log.Info("registry takes records of sessions again", "dropped", dropped)
	}
	return err
}

// take takes the record that has waited longest; nil if there is none.
func (r *recorder) take() *attunev1.SessionRecord {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.order) == 0 {
		return nil
	}
	id := r.order[0]
	r.order = r.order[1:]
	record := r.pending[id]
	delete(r.pending, id)
	return record
}

// giveBack returns a record that was not sent, unless there is a newer one.
func (r *recorder) giveBack(record *attunev1.SessionRecord) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pending[record.GetId()] == nil {
		r.pending[record.GetId()] = record
		r.order = append(r.order, record.GetId())
		r.bound()
	}
}

// signal wakes whoever waits for the channel, at once or when it looks next.
func signal(ch chan<- struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}
