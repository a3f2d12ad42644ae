// SPDX-License-Identifier: Apache-2.0

package track_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/attune-hpc/attune/controller/track"
	"github.com/attune-hpc/attune/internal/testing/patience"
)

// A process of the job that switches Attune off for the program that it executes
// has left the job with it, also where it is the one that was to be followed.
func TestOffFromAnExecOn(t *testing.T) {
	s := begin(t, "ATTUNE=off exec cat")
	s.job.becomeCat(t)
	s.tell(t, track.Event{Kind: track.Exec, PID: s.job.pid(), Time: now() + uint64(time.Minute)})
	if e := s.r.awaitEnd(s.root); !e.GetReplacedByExec() {
		t.Errorf("the shell ended as %v", e)
	}
	if got := s.living(); len(got) != 0 {
		t.Errorf("living %v, want nobody", got)
	}
}

// One that has left the job like that, which nobody has told yet, is not followed when
// that is asked for once more.
func TestOffIsNotFollowedAgain(t *testing.T) {
	r := newRecorder(t)
	tracker := mustTrack(t, track.Options{JobID: jobID(t), Handler: r, PollInterval: time.Hour})
	j := mustStart(t, "ATTUNE=off exec cat")
	first := mustFollow(t, tracker, j.pid())
	j.becomeCat(t)
	if handle, err := tracker.Follow(t.Context(), j.pid()); !errors.Is(err, track.ErrOff) {
		t.Errorf("followed as %d, %v; want %v", handle, err, track.ErrOff)
	}
	if e := r.awaitEnd(first); !e.GetReplacedByExec() {
		t.Errorf("the shell ended as %v", e)
	}
}

// becomeCat lets the script begin and waits until cat has replaced the shell.
func (j *job) becomeCat(t *testing.T) {
	t.Helper()
	j.run(t)
	patience.Until(t, "cat", func() bool {
		name, err := os.Readlink("/proc/" + itoa(j.pid()) + "/exe")
		if err != nil {
			t.Fatal(err)
		}
		return filepath.Base(name) == "cat"
	})
}
