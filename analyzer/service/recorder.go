// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/internal/beat"
	"github.com/attune-hpc/attune/internal/queue"
	"github.com/attune-hpc/attune/internal/registry"
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

	mu      sync.Mutex // guards what follows
	order   *queue.Queue[string]
	pending map[string]*attunev1.SessionRecord
	sending *attunev1.SessionRecord // the registry may have it or not
	failing bool                    // it has been said that the registry does not take them
	told    uint64                  // how many dropped ones the log has told of

	large map[string]bool // sessions of which the log has told that their records are too large; of flush
}

func newRecorder(send func(context.Context, *attunev1.SessionRecord) error, log *slog.Logger) *recorder {
	return &recorder{
		send: send, log: log, order: queue.New[string](maxRecords), pending: make(map[string]*attunev1.SessionRecord),
		large: make(map[string]bool),
	}
}

// put has a record sent, which must not be changed any more.
func (r *recorder) put(record *attunev1.SessionRecord) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pending[record.GetId()] == nil {
		r.line(record.GetId())
	}
	r.pending[record.GetId()] = record
}

// dropped counts the records that were dropped.
func (r *recorder) dropped() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.order.Dropped()
}

// unsent returns the newest records that the registry may not have yet, by id.
func (r *recorder) unsent() map[string]*attunev1.SessionRecord {
	r.mu.Lock()
	defer r.mu.Unlock()
	records := make(map[string]*attunev1.SessionRecord, len(r.pending)+1)
	if r.sending != nil {
		records[r.sending.GetId()] = proto.CloneOf(r.sending)
	}
	for id, record := range r.pending {
		records[id] = proto.CloneOf(record)
	}
	return records
}

// line has a record wait behind all others. The caller holds mu.
func (r *recorder) line(id string) {
	for _, dropped := range r.order.Push(id) {
		delete(r.pending, dropped)
	}
}

// run sends until ctx ends.
func (r *recorder) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.order.Ready():
		}
		for !r.flush(ctx) {
			if !beat.Pause(ctx, recordPause) {
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
			return false
		}
	}
}

func (r *recorder) sendOne(ctx context.Context, record *attunev1.SessionRecord) error {
	ctx, cancel := context.WithTimeout(ctx, recordPatience)
	defer cancel()
	err := r.sendFitting(ctx, record)
	r.mu.Lock()
	r.sending = nil
	if err != nil {
		r.keep(record)
	}
	said, dropped := r.failing, r.order.Dropped()-r.told
	if r.failing = err != nil; !r.failing {
		r.told += dropped
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

// sendFitting sends a record, of one that is too large as many of the kept changes as fit. What
// is too large without any is given up: others wait behind it.
func (r *recorder) sendFitting(ctx context.Context, record *attunev1.SessionRecord) error {
	id := record.GetId()
	err := r.send(ctx, record)
	large, ok := errors.AsType[*registry.TooLargeError](err)
	if !ok {
		if err == nil {
			delete(r.large, id)
		}
		return err
	}
	part := withoutChanges(record, large.Bytes-large.Most)
	err = r.send(ctx, part)
	_, never := errors.AsType[*registry.TooLargeError](err)
	switch {
	case err != nil && !never:
		return err
	case r.large[id]: // it has been said
	case never:
		r.log.Warn("registry does not take the record of a session at all", "session", id, "error", err)
	default:
		r.log.Warn("registry does not take all of a session's record: changes that are left out are undone if another Analyzer takes the session over",
			"session", id, "left_out", len(record.GetKeptChanges())-len(part.GetKeptChanges()), "error", large)
	}
	r.large[id] = true
	if record.GetEndedUnixNano() != 0 {
		delete(r.large, id)
	}
	return nil
}

// withoutChanges returns a copy of a record that lacks as many bytes, or all of its kept changes.
func withoutChanges(record *attunev1.SessionRecord, bytes int) *attunev1.SessionRecord {
	part := proto.CloneOf(record)
	for last := len(part.GetKeptChanges()) - 1; last >= 0 && bytes > 0; last-- {
		bytes -= proto.Size(part.KeptChanges[last])
		part.KeptChanges = part.KeptChanges[:last]
	}
	return part
}

// take takes the record that has waited longest; nil if there is none.
func (r *recorder) take() *attunev1.SessionRecord {
	r.mu.Lock()
	defer r.mu.Unlock()
	id, ok := r.order.TryTake()
	if !ok {
		return nil
	}
	record := r.pending[id]
	delete(r.pending, id)
	r.sending = record
	return record
}

// keep has a record that was not sent wait again, unless there is a newer one.
// The caller holds mu.
func (r *recorder) keep(record *attunev1.SessionRecord) {
	if r.pending[record.GetId()] == nil {
		r.line(record.GetId())
		r.pending[record.GetId()] = record
	}
}
