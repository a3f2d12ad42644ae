// SPDX-License-Identifier: Apache-2.0

package track_test

import (
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
	s.job.run(t)
	exe := "/proc/" + itoa(s.job.pid()) + "/exe"
	patience.Until(t, "cat", func() bool {
		name, err := os.Readlink(exe)
		if err != nil {
			t.Fatal(err)
		}
		return filepath.Base(name) == "cat"
	})
	s.tell(t, track.Event{Kind: track.Exec, PID: s.job.pid(), Time: now() + uint64(time.Minute)})
	if e := s.r.awaitEnd(s.root); !e.GetReplacedByExec() {
		t.Errorf("the shell ended as %v", e)
	}
	if got := s.living(); len(got) != 0 {
		t.Errorf("living %v, want nobody", got)
	}
}
