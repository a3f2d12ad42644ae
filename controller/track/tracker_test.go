// SPDX-License-Identifier: Apache-2.0

package track_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/track"
)

func TestShortLivedProcessesAreTold(t *testing.T) {
	s := begin(t, "true")
	born := now()
	s.tell(t,
		track.Event{Kind: track.Fork, PID: goneA, Parent: s.job.pid(), Time: born, StartTicks: 5},
		track.Event{Kind: track.Exit, PID: goneA, Last: true, Time: born + 1, Status: 256, HasStatus: true},
		track.Event{Kind: track.Fork, PID: goneB, Parent: s.job.pid(), Time: born + 2, StartTicks: 6, UID: 7, HasUID: true},
		track.Event{Kind: track.Exec, PID: goneB, Time: born + 3, Command: "tiny\xc3"}, // cut inside of a letter
		track.Event{Kind: track.Exit, PID: goneB, Last: true, Time: born + 4},
	)
	forked, execed := s.images(goneA), s.images(goneB)
	if len(forked) != 1 || len(execed) != 1 {
		t.Fatalf("images %v and %v, want one each", forked, execed)
	}
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	parent := s.r.latest[s.root]
	if p := s.r.latest[forked[0]]; p.Executable != parent.Executable || p.ParentPid != int32(s.job.pid()) ||
		p.Job.Id != parent.Job.Id || p.Identity.StartTicks != 5 {
		t.Errorf("fork is told as %v", p)
	}
	if e := s.r.ended[forked[0]]; e.GetWaitStatus() != 256 {
		t.Errorf("its end as %v", e)
	}
	if p := s.r.latest[execed[0]]; p.Executable != "" || p.CommandLine[0] != "tiny?" || p.Uid != 7 || p.Job.Id != parent.Job.Id {
		t.Errorf("exec is told as %v", p)
	}
	if e := s.r.ended[execed[0]]; e == nil || e.WaitStatus != nil || e.ReplacedByExec {
		t.Errorf("its end as %v", e)
	}
}

func TestEventsThatComeLate(t *testing.T) {
	s := begin(t, "true")
	pid := s.job.pid()
	before := uint64(1) // long before the process was followed
	s.tell(t,
		track.Event{Kind: track.Fork, PID: pid, Parent: 1, Member: true, Time: before},
		track.Event{Kind: track.Exec, PID: pid, Time: before + 1},
		track.Event{Kind: track.Exit, PID: pid, Last: true, Time: before + 2}, // of an earlier process
	)
	if got := s.images(pid); len(got) != 1 || got[0] != s.root {
		t.Errorf("images %v, want %d only", got, s.root)
	}
	s.tell(t, track.Event{Kind: track.Exec, PID: pid, Time: now() + uint64(time.Minute)})
	if got := s.images(pid); len(got) != 2 {
		t.Errorf("an exec of the same program without address randomisation is not told: images %v", got)
	}
}

// TestExecThatShowsBeforeItsEvent describes an image a moment before the
// kernel's event of it: what shows the same addresses is the same image.
func TestExecThatShowsBeforeItsEvent(t *testing.T) {
	s := begin(t, "true")
	pid := s.job.pid()
	register := func() uint64 {
		handle, err := s.tracker.Registered(t.Context(), pid)
		if err != nil {
			t.Fatal(err)
		}
		return handle
	}
	register() // each further one describes the process anew
	for {
		before := now()
		handle := register()
		after := now()
		if after-before > uint64(40*time.Millisecond) {
			continue // a busy machine: the event would be too late to be the same
		}
		s.tell(t, track.Event{Kind: track.Exec, PID: pid, Time: after})
		if got := s.images(pid); got[len(got)-1] != handle {
			t.Errorf("images %v, want %d to be the last", got, handle)
		}
		return
	}
}

// TestLastProcessesAreTold: what the source still has when the tracker is
// stopped belongs to the job as well.
func TestLastProcessesAreTold(t *testing.T) {
	r, source := newRecorder(t), newScript()
	tracker, err := track.New(track.Options{JobID: jobID(t), Handler: r, Source: source, PollInterval: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	j := mustStart(t, "true")
	const count = 140 // twice that is more than the queue holds
	for n := range count {
		source.last = append(source.last,
			track.Event{Kind: track.Fork, PID: goneA + n, Parent: j.pid(), Time: now()},
			track.Event{Kind: track.Exit, PID: goneA + n, Last: true, HasStatus: true, Time: now()})
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- tracker.Run(ctx) }()
	mustFollow(t, tracker, j.pid())
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if len(r.ended) != count || len(r.latest) != count+1 {
		t.Errorf("told of %d ends and %d starts, want %d and one more", len(r.ended), len(r.latest), count)
	}
}

// TestLastEndIsTold: without a source, an end that nobody has seen when the tracker is stopped is
// told as well.
func TestLastEndIsTold(t *testing.T) {
	for range 20 { // what else sees an end may be in time
		r := newRecorder(t)
		tracker, err := track.New(track.Options{JobID: jobID(t), Handler: r, PollInterval: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		j := mustStart(t, "true")
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- tracker.Run(ctx) }()
		handle := mustFollow(t, tracker, j.pid())
		j.EndWell(t)
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if r.ended[handle] == nil {
			t.Fatalf("process %d has not ended, as far as is told", handle)
		}
	}
}

func TestReusedPID(t *testing.T) {
	s := begin(t, "true")
	born := now()
	s.tell(t,
		track.Event{Kind: track.Fork, PID: goneA, Parent: s.job.pid(), Time: born, StartTicks: 5},
		track.Event{Kind: track.Fork, PID: goneA, Parent: s.job.pid(), Time: born + 1, StartTicks: 9},
		track.Event{Kind: track.Exit, PID: goneA, Last: true, Time: born + 2},
	)
	images := s.images(goneA)
	if len(images) != 2 {
		t.Fatalf("images %v, want 2", images)
	}
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	if a, b := s.r.latest[images[0]], s.r.latest[images[1]]; a.Identity.StartTicks != 5 || b.Identity.StartTicks != 9 {
		t.Errorf("images %v and %v", a, b)
	}
}

func TestForeignProcessesAreLeftOut(t *testing.T) {
	s := begin(t, "true")
	s.tell(t,
		track.Event{Kind: track.Fork, PID: goneA, Parent: goneB, Time: now()}, // of a parent that is not ours
		track.Event{Kind: track.Exec, PID: os.Getpid(), Time: now()},          // Attune itself
		track.Event{Kind: track.Exec, PID: os.Getppid(), Time: now()},
		track.Event{Kind: track.Exit, PID: goneB, Time: now()},
	)
	if got := s.living(); len(got) != 1 || got[0] != s.root {
		t.Errorf("living %v, want %d only", got, s.root)
	}
}

// TestLibraryLoadedLater looks for a change of the list of objects that nobody
// asked for.
func TestLibraryLoadedLater(t *testing.T) {
	r := newRecorder(t)
	tracker := mustTrack(t, track.Options{JobID: jobID(t), Handler: r})
	program := mustBuild(t, "dlopen.c")
	j := mustStart(t, "exec "+program+" 0<&0")
	mustFollow(t, tracker, j.pid())
	j.run(t)
	p := r.awaitImage(program)
	has := func() bool {
		for _, object := range r.latest[p.Handle].Objects {
			if base(object) == "libm.so.6" {
				return true
			}
		}
		return false
	}
	r.mu.Lock()
	if has() {
		t.Error("the library is there too early")
	}
	r.mu.Unlock()
	j.run(t)
	r.await("libm", has)
}

func TestSourceThatFails(t *testing.T) {
	s := begin(t, "sleep 600; true")
	s.job.run(t)
	s.fail <- errors.New("ring is broken")
	// From now on /proc is polled.
	p := s.r.awaitImage("sleep", "600")
	if err := unix.Kill(int(p.Identity.Pid), unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.r.awaitEnd(p.Handle)
	s.r.awaitEnd(s.root)
}

// A process whose end nobody tells does not stay, and does not come back when what it did
// is told after all.
func TestLostExit(t *testing.T) {
	s := &scene{script: newScript(), r: newRecorder(t)}
	tracker := mustTrack(t, track.Options{JobID: jobID(t), Handler: s.r, Source: s.script, PollInterval: 5 * time.Millisecond})
	j := mustStart(t, "exit 3")
	root := mustFollow(t, tracker, j.pid())
	s.r.mu.Lock()
	start := s.r.latest[root].Identity.StartTicks
	s.r.mu.Unlock()
	j.run(t)
	if e := s.r.awaitEnd(root); e.GetWaitStatus() != 3<<8 {
		t.Errorf("end %v", e)
	}
	s.tell(t,
		track.Event{Kind: track.Exec, PID: j.pid(), Member: true, Time: now(), StartTicks: start},
		track.Event{Kind: track.Exit, PID: j.pid(), Member: true, Last: true, Time: now(), StartTicks: start},
	)
	if got := s.images(j.pid()); len(got) != 1 {
		t.Errorf("images %v, want one", got)
	}
	s.tell(t, track.Event{Kind: track.Fork, PID: j.pid(), Parent: 1, Member: true, Time: now(), StartTicks: start + 1},
		track.Event{Kind: track.Exit, PID: j.pid(), Member: true, Last: true, Time: now(), StartTicks: start + 1})
	if got := s.images(j.pid()); len(got) != 2 {
		t.Errorf("images %v, want that of the next process of the pid, too", got)
	}
}

func TestTooManyProcesses(t *testing.T) {
	tracker := mustTrack(t, track.Options{
		JobID: jobID(t), Handler: newRecorder(t), Source: newScript(), PollInterval: time.Hour, MaxProcesses: 2,
	})
	mustFollow(t, tracker, mustStart(t, "true").pid())
	first, second := mustStart(t, "true"), mustStart(t, "true")
	if _, err := tracker.Registered(t.Context(), first.pid()); err != nil {
		t.Fatal(err)
	}
	if _, err := tracker.Registered(t.Context(), second.pid()); !errors.Is(err, track.ErrTooMany) {
		t.Errorf("error %v", err)
	}
}

func TestStopped(t *testing.T) {
	source := newScript()
	tracker, err := track.New(track.Options{Handler: newRecorder(t), Source: source})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := tracker.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := tracker.Follow(t.Context(), os.Getpid()); !errors.Is(err, track.ErrStopped) {
		t.Errorf("follow after the end: %v", err)
	}
	if !source.closed.Load() {
		t.Error("the source is not closed")
	}
	if _, err := track.New(track.Options{}); err == nil {
		t.Error("a tracker without handler is accepted")
	}
}
