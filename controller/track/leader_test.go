// SPDX-License-Identifier: Apache-2.0

package track_test

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/attune-hpc/attune/controller/track"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// TestDescribeWhileFirstThreadEnds looks at a program at every moment from its
// second thread's start to its first thread's end: it is there all the time, and
// shows what it is.
func TestDescribeWhileFirstThreadEnds(t *testing.T) {
	program := mustBuild(t, "leader.c", "-pthread")
	for range targets.Fewer(200) {
		target := targets.Launch(t, exec.Command(program))
		for ended, end := false, time.Now().Add(patience.Limit); !ended; {
			before, err := procid.ReadStat(target.PID)
			if err != nil {
				t.Fatal(err)
			}
			if before.Threads > 1 { // else it may not even have been loaded
				describeLeader(t, target.PID, program, before)
			}
			if ended = before.State == 'Z'; time.Now().After(end) {
				t.Fatal("the first thread does not end")
			}
		}
		target.Kill()
	}
}

func describeLeader(t *testing.T, pid int, program string, before procid.Stat) {
	t.Helper()
	d, err := track.Describe(nil, pid, track.Event{})
	if err != nil {
		t.Fatalf("%v (%+v)", err, before)
	}
	defer d.Held.Close()
	p := d.Process
	if p.GetExecutable() != program || len(p.GetCommandLine()) != 1 || p.GetIdentity().GetExeInode() == 0 || p.GetCpusAllowed() == 0 {
		t.Fatalf("%v (%+v)", p, before)
	}
}

// TestFoundWithoutFirstThread: a process that nobody told of, and that is no member's child, is
// found by its environment, which its first thread does not show any more.
func TestFoundWithoutFirstThread(t *testing.T) {
	program := mustBuild(t, "leader.c", "-pthread")
	command := exec.Command(program)
	command.Env = append(os.Environ(), "ATTUNE_JOB="+jobID(t))
	target := targets.Launch(t, command)
	patience.Until(t, "the first thread to end", func() bool {
		stat, err := procid.ReadStat(target.PID)
		if err != nil {
			t.Fatal(err)
		}
		return stat.Leaderless()
	})
	r := newRecorder(t)
	mustTrack(t, track.Options{JobID: jobID(t), Handler: r, PollInterval: 5 * time.Millisecond})
	if p := r.awaitImage(program); int(p.GetIdentity().GetPid()) != target.PID {
		t.Errorf("found %v, want process %d", p, target.PID)
	}
}
