// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/attune-hpc/attune/analyzer/fold"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestPublish: a session in which nothing changes puts its record again before the registry
// forgets it, and when the registry may have lost it.
func TestPublish(t *testing.T) {
	now, epoch, sent := time.Unix(0, 0), uint64(1), 0
	h := &hosted{
		record: &attunev1.SessionRecord{Id: "s"}, now: func() time.Time { return now },
		recorder: newRecorder(func(context.Context, *attunev1.SessionRecord) error { sent++; return nil }, slog.New(slog.DiscardHandler)),
	}
	h.epoch = func() uint64 {
		if !h.mu.TryLock() { // the lease has a lock of its own
			t.Fatal("the lease is asked under a leaf lock")
		}
		defer h.mu.Unlock()
		return epoch
	}
	for _, step := range []struct {
		name string
		then func()
		want int // records so far
	}{
		{"it begins", func() {}, 1},
		{"a moment later", func() { now = now.Add(time.Second) }, 1},
		{"much later", func() { now = now.Add(publishEvery) }, 2},
		{"a moment after that", func() { now = now.Add(time.Second) }, 2},
		{"the lease was taken again", func() { epoch++ }, 3},
		{"and then", func() {}, 3},
	} {
		step.then()
		h.publish(fold.Summary{})
		h.recorder.flush(t.Context())
		if sent != step.want {
			t.Errorf("%s: %d records were sent, want %d", step.name, sent, step.want)
		}
	}
}
