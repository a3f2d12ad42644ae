// SPDX-License-Identifier: Apache-2.0

package track_test

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/track"
	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// script is a Source that tells what the test says.
type script struct {
	events  chan track.Event
	fail    chan error
	lost    atomic.Uint64
	closed  atomic.Bool
	mu      sync.Mutex
	added   []int
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

func now() uint64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err)
	}
	return uint64(t.Nano())
}

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

func TestShortLivedProcessesAreTold(t *testing.T) {
	s := begin(t, "true")
	born := now()
	s.tell(t,
		track.Event{Kind: track.Fork, PID: goneA, Parent: s.job.pid(), Time: born, StartTicks: 5},
		track.Event{Kind: track.Exit, PID: goneA, Last: true, Time: born + 1, Status: 256, HasStatus: true},
		track.Event{Kind: track.Fork, PID: goneB, Parent: s.job.pid(), Time: born + 2, StartTicks: 6, UID: 7, HasUID: true},
		track.Event{Kind: track.Exec, PID: goneB, Time: born + 3, Command: "tiny"},
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
	if p := s.r.latest[execed[0]]; p.Executable != "" || p.CommandLine[0] != "tiny" || p.Uid != 7 || p.Job.Id != parent.Job.Id {
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
	const count = 200 // twice that is more than the queue holds
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
	tests := []struct {
		name string
		pid  int
		want error
	}{
		{"no process", goneA, procid.ErrGone},
		{"Attune itself", os.Getpid(), track.ErrForeign},
		{"another job", other.pid(), track.ErrForeign},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if _, err := s.tracker.Registered(t.Context(), test.pid); !errors.Is(err, test.want) {
				t.Errorf("error %v, want %v", err, test.want)
			}
		})
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

func TestUpdateAndRefresh(t *testing.T) {
	s := begin(t, "true")
	err := s.tracker.Update(t.Context(), s.root, func(p *attunev1.Process) {
		p.Mechanisms = []*attunev1.Mechanism{{Name: "dmlib", Available: true}}
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.tracker.Refresh(t.Context(), s.root); err != nil {
		t.Fatal(err)
	}
	s.r.mu.Lock()
	p := s.r.latest[s.root]
	s.r.mu.Unlock()
	if len(p.Mechanisms) != 1 || p.Executable == "" || len(p.Objects) == 0 {
		t.Errorf("process %v", p)
	}
	for _, err := range []error{
		s.tracker.Refresh(t.Context(), 999),
		s.tracker.Update(t.Context(), 999, func(*attunev1.Process) { t.Error("called for nothing") }),
	} {
		if !errors.Is(err, track.ErrUnknownHandle) {
			t.Errorf("unknown handle: %v", err)
		}
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

// TestLostExit makes sure that a process whose end nobody told does not stay.
func TestLostExit(t *testing.T) {
	silent, r := newScript(), newRecorder(t)
	tracker := mustTrack(t, track.Options{JobID: jobID(t), Handler: r, Source: silent, PollInterval: 5 * time.Millisecond})
	j := mustStart(t, "exit 3")
	root := mustFollow(t, tracker, j.pid())
	j.run(t)
	if e := r.awaitEnd(root); e.GetWaitStatus() != 3<<8 {
		t.Errorf("end %v", e)
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
