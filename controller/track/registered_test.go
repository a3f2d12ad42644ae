// SPDX-License-Identifier: Apache-2.0

package track_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/attune-hpc/attune/controller/track"
	"github.com/attune-hpc/attune/internal/procid"
)

func TestRegistered(t *testing.T) {
	s := begin(t, "exec cat")
	register := func() uint64 {
		t.Helper()
		handle, err := s.tracker.Registered(t.Context(), s.job.pid())
		if err != nil {
			t.Fatal(err)
		}
		return handle
	}
	if got := register(); got != s.root {
		t.Errorf("handle %d, want the image's %d", got, s.root)
	}
	second := register()
	if second == s.root {
		t.Error("a second registration is taken for the same image")
	}
	if e := s.r.awaitEnd(s.root); !e.ReplacedByExec {
		t.Errorf("the first image ended as %v", e)
	}
	// An exec that registers before its event is told: the event is late.
	s.job.run(t)
	s.r.await("cat to run", func() bool {
		name, err := os.Readlink("/proc/" + itoa(s.job.pid()) + "/exe")
		if err != nil {
			return true
		}
		if name == s.r.latest[second].Executable {
			time.AfterFunc(time.Millisecond, func() { s.r.mu.Lock(); s.r.changed.Broadcast(); s.r.mu.Unlock() })
			return false
		}
		return true
	})
	execed := now()
	third := register()
	s.tell(t, track.Event{Kind: track.Exec, PID: s.job.pid(), Time: execed})
	if got := s.images(s.job.pid()); len(got) != 3 || got[2] != third {
		t.Errorf("images %v, want the third to be %d", got, third)
	}
}

func TestRegisteredRefuses(t *testing.T) {
	s := begin(t, "true")
	other := mustStart(t, "true", "ATTUNE_JOB=other")
	off := mustStart(t, "true", "ATTUNE=off")
	tests := []struct {
		name string
		pid  int
		want error
	}{
		{"no process", goneA, procid.ErrGone},
		{"Attune itself", os.Getpid(), track.ErrForeign},
		{"another job", other.pid(), track.ErrForeign},
		{"switched off", off.pid(), track.ErrOff},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if _, err := s.tracker.Registered(t.Context(), test.pid); !errors.Is(err, test.want) {
				t.Errorf("error %v, want %v", err, test.want)
			}
		})
	}
	if _, err := s.tracker.Follow(t.Context(), off.pid()); !errors.Is(err, track.ErrOff) {
		t.Errorf("following what is switched off: %v", err)
	}
	if got := s.living(); len(got) != 1 {
		t.Errorf("living %v", got)
	}
}

func TestRegisteredOfAnUnknownProcess(t *testing.T) {
	s := begin(t, "true")
	stranger := mustStart(t, "true") // carries the job's id, but nobody told
	handle, err := s.tracker.Registered(t.Context(), stranger.pid())
	if err != nil {
		t.Fatal(err)
	}
	if got := s.images(stranger.pid()); len(got) != 1 || got[0] != handle {
		t.Errorf("images %v, want %d", got, handle)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.added) == 0 || s.added[len(s.added)-1] != stranger.pid() {
		t.Errorf("the source follows %v", s.added)
	}
}

// TestEndsWhenItIsFollowed: a process of whose end nobody will tell is not taken for one
// that lives on, however it comes to the tracker.
func TestEndsWhenItIsFollowed(t *testing.T) {
	for name, ask := range map[string]func(*track.Tracker, context.Context, int) (uint64, error){
		"registered": (*track.Tracker).Registered, "followed": (*track.Tracker).Follow,
	} {
		t.Run(name, func(t *testing.T) {
			s := begin(t, "true")
			ends := mustStart(t, "true")
			s.mu.Lock()
			s.over = ends.pid()
			s.mu.Unlock()
			if _, err := ask(s.tracker, t.Context(), ends.pid()); !errors.Is(err, procid.ErrGone) {
				t.Errorf("error %v", err)
			}
			if got := s.living(); len(got) != 1 {
				t.Errorf("living: %v", got)
			}
		})
	}
}
