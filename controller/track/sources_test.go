// SPDX-License-Identifier: Apache-2.0

package track_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/attune-hpc/attune/controller/track"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/openfiles"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// testSource is the suite that a tracker with any source must pass; open
// returns nil for polling.
func testSource(t *testing.T, open func(t *testing.T) track.Source) {
	poll := 5 * time.Millisecond
	begin := func(t *testing.T, script string, env ...string) (*track.Tracker, *recorder, *job, uint64) {
		r := newRecorder(t)
		options := track.Options{JobID: jobID(t), Handler: r, Source: open(t)}
		if options.Source == nil {
			options.PollInterval = poll
		}
		tracker := mustTrack(t, options)
		j := mustStart(t, script, env...)
		return tracker, r, j, mustFollow(t, tracker, j.pid())
	}
	t.Run("children", func(t *testing.T) {
		_, r, j, root := begin(t, "sleep 600 & sleep 601 & sh -c 'sleep 602; true'; true")
		j.run(t)
		first := r.awaitImage("sleep", "600")
		if first.ParentPid != int32(j.pid()) || first.Job.Id != jobID(t) || first.Job.Kind != "attune" {
			t.Errorf("child %v", first)
		}
		for _, seconds := range []string{"600", "601", "602"} {
			p := r.awaitImage("sleep", seconds)
			if err := syscall.Kill(int(p.Identity.Pid), syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			r.awaitEnd(p.Handle)
		}
		if e := r.awaitEnd(root); e.ReplacedByExec {
			t.Errorf("end of the root: %v", e)
		}
	})
	t.Run("exec", func(t *testing.T) {
		_, r, j, root := begin(t, "exec cat")
		j.run(t)
		next := r.awaitImage("cat")
		if e := r.awaitEnd(root); !e.ReplacedByExec || e.WaitStatus != nil {
			t.Errorf("end of the shell: %v", e)
		}
		if next.Identity.Pid != int32(j.pid()) || next.Handle == root {
			t.Errorf("image %v", next)
		}
		j.CloseInput()
		if e := r.awaitEnd(next.Handle); e.ReplacedByExec {
			t.Errorf("end of cat: %v", e)
		}
	})
	t.Run("wait status", func(t *testing.T) {
		_, r, j, root := begin(t, "exit 7")
		j.run(t)
		if e := r.awaitEnd(root); e.WaitStatus == nil || syscall.WaitStatus(*e.WaitStatus).ExitStatus() != 7 {
			t.Errorf("end %v", e)
		}
	})
	t.Run("death by signal", func(t *testing.T) {
		_, r, j, root := begin(t, "true")
		if err := syscall.Kill(j.pid(), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if e := r.awaitEnd(root); e.WaitStatus == nil || syscall.WaitStatus(*e.WaitStatus).Signal() != syscall.SIGKILL {
			t.Errorf("end %v", e)
		}
	})
	t.Run("orphan in a session of its own", func(t *testing.T) {
		_, r, j, root := begin(t, "(setsid sleep 603 &) ; exit 0")
		j.run(t)
		p := r.awaitImage("sleep", "603")
		r.awaitEnd(root)
		if err := syscall.Kill(int(p.Identity.Pid), syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		r.awaitEnd(p.Handle)
	})
	t.Run("fork without exec", func(t *testing.T) {
		_, r, j, root := begin(t, "(read again < "+mustFIFO(t)+") & wait")
		j.run(t)
		r.await("the subshell", func() bool { return len(r.latest) == 2 })
		r.mu.Lock()
		defer r.mu.Unlock()
		for handle, p := range r.latest {
			if handle != root && (p.ParentPid != int32(j.pid()) || len(p.CommandLine) != 3) {
				t.Errorf("subshell %v", p)
			}
		}
	})
	t.Run("another job", func(t *testing.T) {
		foreign := filepath.Join(t.TempDir(), "pid")
		_, r, j, _ := begin(t, "ATTUNE_JOB=other sleep 604 & echo $! > "+foreign+"; sleep 605 & wait")
		j.run(t)
		r.awaitImage("sleep", "605")
		r.await("the other job's sleep to be left out", func() bool {
			for _, p := range r.find("sleep", "604") {
				if r.ended[p.Handle] == nil {
					return false
				}
			}
			return true
		})
		killForeign(t, foreign)
	})
	t.Run("several threads, the first one ends", func(t *testing.T) {
		program := mustBuild(t, "leader.c", "-pthread")
		_, r, j, _ := begin(t, program+" < "+mustFIFO(t)+"; exit 0")
		j.run(t)
		p := r.awaitImage(program)
		r.await("more than one image", func() bool { return len(r.latest) >= 2 })
		r.mu.Lock()
		ended := r.ended[p.Handle]
		r.mu.Unlock()
		if ended != nil {
			t.Errorf("ended with its first thread: %v", ended)
		}
		if err := syscall.Kill(int(p.Identity.Pid), syscall.SIGUSR1); err != nil {
			t.Fatal(err)
		}
		if e := r.awaitEnd(p.Handle); e.WaitStatus == nil || syscall.WaitStatus(*e.WaitStatus).Signal() != syscall.SIGUSR1 {
			t.Errorf("end %v", e)
		}
	})
	t.Run("exec, then the first thread ends", func(t *testing.T) {
		poll = 100 * time.Millisecond // both happen between two scans
		program := mustBuild(t, "leader.c", "-pthread")
		fifo := mustFIFO(t)
		_, r, j, _ := begin(t, "(read again < "+fifo+"; exec "+program+" < "+fifo+") & wait")
		j.run(t)
		r.await("the subshell", func() bool { return len(r.latest) == 2 })
		files.Write(t, fifo, "\n", 0)
		p := r.awaitImage(program)
		if err := syscall.Kill(int(p.Identity.Pid), syscall.SIGUSR1); err != nil {
			t.Fatal(err)
		}
		r.awaitEnd(p.Handle)
	})
	t.Run("exec by another thread", func(t *testing.T) {
		program := mustBuild(t, "threadexec.c", "-pthread")
		_, r, j, _ := begin(t, program+"; exit 0")
		j.run(t)
		p := r.awaitImage("sleep", "606")
		if err := syscall.Kill(int(p.Identity.Pid), syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		r.awaitEnd(p.Handle)
	})
	t.Run("digest and objects", func(t *testing.T) {
		_, r, _, root := begin(t, "true")
		r.await("digest and libc", func() bool {
			p := r.latest[root]
			return len(p.ExecutableSha256) == 64 && strings.Contains(strings.Join(p.Objects, " "), "/libc.so")
		})
		r.mu.Lock()
		defer r.mu.Unlock()
		if p := r.latest[root]; !strings.Contains(p.Executable, "/") || p.CpusAllowed == 0 || p.Uid != uint32(os.Getuid()) {
			t.Errorf("process %v", p)
		}
	})
}

func mustFIFO(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	// Held open for writing, so that a reader waits until the test ends.
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return path
}

// killForeign ends the process whose pid the script has written to a file.
func killForeign(t *testing.T, path string) {
	t.Helper()
	text := files.Read(t, path)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		t.Error(err)
	}
}

func TestPolling(t *testing.T) {
	testSource(t, func(*testing.T) track.Source { return nil })
}

// mustConnect skips where the kernel's process connector cannot be used: in
// containers and, before Linux 6.6, without privileges.
func mustConnect(t *testing.T) track.Source {
	t.Helper()
	source, err := track.NewConnector()
	if errors.Is(err, track.ErrNoConnector) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return source
}

func TestConnector(t *testing.T) { testSource(t, mustConnect) }

func TestConnectorMissesNothing(t *testing.T) { testStorms(t, mustConnect) }

// storms is how many may be spoilt by what else the machine does: the source
// is told of all its processes, and a full buffer loses events. That is allowed
// where it is counted, but not every time on a machine of one's own (scripts/vm).
const storms = 3

// testStorms runs 2,000 processes that end at once.
func testStorms(t *testing.T, open func(*testing.T) track.Source) {
	for i := range storms {
		var lost uint64
		if !t.Run(itoa(i), func(t *testing.T) { lost = storm(t, open(t)) }) || lost == 0 {
			return // failed, skipped or passed
		}
		t.Logf("storm %d: %d events lost, and counted", i, lost)
	}
	if testing.Short() {
		t.Errorf("events were lost in each of %d storms", storms)
	}
}

// storm returns how many events were lost. Without losses every process must
// have been told of; with them those that were told of must still end.
func storm(t *testing.T, source track.Source) (lost uint64) {
	wanted := targets.Fewer(2000)
	r := newRecorder(t)
	tracker := mustTrack(t, track.Options{JobID: jobID(t), Handler: r, Source: source})
	j := mustStart(t, fmt.Sprintf("i=0; while [ $i -lt %d ]; do /bin/true $i; i=$((i+1)); done; exit 0", wanted))
	root := mustFollow(t, tracker, j.pid())
	before := openfiles.Count(t)
	j.run(t)
	r.awaitEnd(root)
	r.await("the last process to end", func() bool { return len(r.ended) == len(r.latest) })
	if after := openfiles.Count(t); after > before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
	if lost = source.Lost(); lost == 0 {
		r.wantAll(t, root, wanted)
		return lost
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.latest) < 2 {
		t.Errorf("of %d processes none was told of", wanted)
	}
	return lost
}

// wantAll checks that as many processes as wanted were told of, beside root,
// and how they ended.
func (r *recorder) wantAll(t *testing.T, root uint64, wanted int) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	// On a busy machine a shell's child may live longer than the grace of a
	// fork before it execs; then it is told of twice, as two images.
	processes, described := 0, 0
	for handle, p := range r.latest {
		e := r.ended[handle]
		if handle == root || e.GetReplacedByExec() {
			continue
		}
		processes++
		if len(p.CommandLine) == 2 {
			described++
		}
		if e == nil || e.WaitStatus == nil || *e.WaitStatus != 0 {
			t.Errorf("process %v ended as %v", p, e)
		}
	}
	if processes != wanted {
		t.Errorf("%d processes told of, want %d", processes, wanted)
	}
	t.Logf("%d of %d could be described before they ended", described, processes)
}

var _ track.Handler = (*recorder)(nil)
