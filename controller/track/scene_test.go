// SPDX-License-Identifier: Apache-2.0

package track_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/attune-hpc/attune/controller/track"
	"github.com/attune-hpc/attune/internal/clock"
	"github.com/attune-hpc/attune/internal/procid"
)

// script is a Source that tells what the test says.
type script struct {
	events  chan track.Event
	fail    chan error
	lost    atomic.Uint64
	closed  atomic.Bool
	mu      sync.Mutex
	added   []int
	over    int // the pid of a process that is at its end
	removed []int
	last    []track.Event // told when everything ends
}

func newScript() *script {
	return &script{events: make(chan track.Event), fail: make(chan error, 1)}
}

func (s *script) Add(pid int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.added = append(s.added, pid)
	if pid == s.over {
		return procid.ErrGone
	}
	return nil
}

func (s *script) Remove(pid int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removed = append(s.removed, pid)
	return nil
}

func (s *script) Run(ctx context.Context, handle func(track.Event)) error {
	for {
		select {
		case e := <-s.events:
			handle(e)
		case err := <-s.fail:
			return err
		case <-ctx.Done():
			for _, e := range s.last {
				handle(e)
			}
			return nil
		}
	}
}

func (s *script) Lost() uint64 { return s.lost.Load() }

func (s *script) Close() error {
	s.closed.Store(true)
	return nil
}

// scene is a tracker whose events the test makes up, with a process to follow.
type scene struct {
	*script
	r       *recorder
	tracker *track.Tracker
	job     *job
	root    uint64
}

// begin follows a waiting shell; scans come too rarely to interfere.
func begin(t *testing.T, text string) *scene {
	t.Helper()
	s := &scene{script: newScript(), r: newRecorder(t)}
	s.tracker = mustTrack(t, track.Options{
		JobID: jobID(t), Handler: s.r, Source: s.script, PollInterval: time.Hour,
	})
	s.job = mustStart(t, text)
	s.root = mustFollow(t, s.tracker, s.job.pid())
	return s
}

// tell sends events and returns after all of them were handled: the queue in
// between keeps the order, and the last event is one that shows.
func (s *scene) tell(t *testing.T, events ...track.Event) {
	t.Helper()
	marker := track.Event{Kind: track.Fork, PID: markerPID, Member: true, Time: now()}
	end := track.Event{Kind: track.Exit, PID: markerPID, Last: true, Time: now() + 1}
	for _, e := range append(events, marker, end) {
		s.events <- e
	}
	s.r.await("the marker", func() bool {
		for handle, p := range s.r.latest {
			if p.Identity.Pid == markerPID && s.r.ended[handle] != nil {
				delete(s.r.latest, handle)
				return true
			}
		}
		return false
	})
}

// Pids beyond the greatest that Linux gives.
const markerPID, goneA, goneB = 1<<23 + 1, 1<<23 + 2, 1<<23 + 3

func now() uint64 { return uint64(clock.Monotonic()) }

func (s *scene) living() []uint64 {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	var handles []uint64
	for handle := range s.r.latest {
		if s.r.ended[handle] == nil {
			handles = append(handles, handle)
		}
	}
	return handles
}

func (s *scene) images(pid int) (handles []uint64) {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	for handle := uint64(1); handle <= uint64(len(s.r.log)); handle++ {
		if p := s.r.latest[handle]; p != nil && int(p.Identity.Pid) == pid {
			handles = append(handles, handle)
		}
	}
	return handles
}
