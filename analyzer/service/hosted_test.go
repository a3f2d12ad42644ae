// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/attune-hpc/attune/analyzer/fold"
	"github.com/attune-hpc/attune/internal/testing/patience"
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

// TestAuditOfSessions: every session has a place for its decisions.
func TestAuditOfSessions(t *testing.T) {
	p := newPlace(t)
	asked := make(chan string, 8)
	a := p.analyzer("a", func(c *Config) {
		c.Audit = func(what string) io.Writer { asked <- what; return io.Discard }
	})
	ann := p.people(p.pki.User(t, "ann", annUID), a)
	id := register(t, a, ann, &attunev1.Registration{Executable: "solver", Mode: "observe"})
	p.dial(a, hello("n1", id, job), 1)
	if got, want := patience.Receive(t, "place for decisions", asked), "session "+id+".slurm-12.0"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
