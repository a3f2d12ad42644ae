// SPDX-License-Identifier: Apache-2.0

package track_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/track"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// recorder is a Handler that keeps everything and checks the order.
type recorder struct {
	t *testing.T

	mu      sync.Mutex
	changed *sync.Cond
	log     []string // "start 1", "end 1"
	latest  map[uint64]*attunev1.Process
	ended   map[uint64]*attunev1.ProcessEnded
	held    map[uint64]*procid.Process
}

func newRecorder(t *testing.T) *recorder {
	r := &recorder{
		t: t, latest: make(map[uint64]*attunev1.Process),
		ended: make(map[uint64]*attunev1.ProcessEnded), held: make(map[uint64]*procid.Process),
	}
	r.changed = sync.NewCond(&r.mu)
	return r
}

func (r *recorder) Started(p *attunev1.Process, held *procid.Process) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.latest[p.Handle] != nil || p.Handle == 0 {
		r.t.Errorf("handle %d was told twice", p.Handle)
	}
	if p.GetIdentity().GetPid() == 0 || p.Host == "" || p.SeenUnixNano == 0 {
		r.t.Errorf("incomplete process %v", p)
	}
	for handle, other := range r.latest {
		if r.ended[handle] == nil && other.Identity.Pid == p.Identity.Pid {
			r.t.Errorf("pid %d has two images at once", p.Identity.Pid)
		}
	}
	r.latest[p.Handle], r.held[p.Handle] = p, held
	r.log = append(r.log, fmt.Sprintf("start %d", p.Handle))
	r.changed.Broadcast()
}

func (r *recorder) Changed(p *attunev1.Process) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.latest[p.Handle] == nil || r.ended[p.Handle] != nil {
		r.t.Errorf("change of handle %d, which does not live", p.Handle)
	}
	r.latest[p.Handle] = p
	r.changed.Broadcast()
}

func (r *recorder) Ended(e *attunev1.ProcessEnded) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.latest[e.Process] == nil || r.ended[e.Process] != nil {
		r.t.Errorf("end of handle %d, which does not live", e.Process)
	}
	r.ended[e.Process] = e
	r.log = append(r.log, fmt.Sprintf("end %d", e.Process))
	r.changed.Broadcast()
}

// await waits until condition holds, which is asked under the lock.
func (r *recorder) await(what string, condition func() bool) {
	r.t.Helper()
	timeout := time.AfterFunc(patience.Limit, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.changed.Broadcast()
	})
	defer timeout.Stop()
	deadline := time.Now().Add(patience.Limit)
	r.mu.Lock()
	defer r.mu.Unlock()
	for !condition() {
		if time.Now().After(deadline) {
			r.t.Fatalf("waited in vain for %s; known: %s", what, r.summary())
		}
		r.changed.Wait()
	}
}

func (r *recorder) summary() string {
	var b strings.Builder
	for handle, p := range r.latest {
		fmt.Fprintf(&b, "\n%d: pid %d of %d, %s %q, ended %v", handle, p.Identity.Pid, p.ParentPid, p.Executable, p.CommandLine, r.ended[handle])
	}
	return b.String()
}

// find returns the images whose command line begins with these words. The
// caller holds mu or all is over.
func (r *recorder) find(words ...string) []*attunev1.Process {
	var found []*attunev1.Process
	for _, p := range r.latest {
		if len(p.CommandLine) >= len(words) && slices.Equal(p.CommandLine[:len(words)], words) {
			found = append(found, p)
		}
	}
	slices.SortFunc(found, func(a, b *attunev1.Process) int { return int(a.Handle) - int(b.Handle) })
	return found
}

// awaitImage waits for the first image with this command line.
func (r *recorder) awaitImage(words ...string) *attunev1.Process {
	r.t.Helper()
	r.await(fmt.Sprintf("an image of %q", words), func() bool { return len(r.find(words...)) > 0 })
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.find(words...)[0]
}

// awaitEnd waits for the end of an image.
func (r *recorder) awaitEnd(handle uint64) *attunev1.ProcessEnded {
	r.t.Helper()
	r.await(fmt.Sprintf("the end of %d", handle), func() bool { return r.ended[handle] != nil })
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ended[handle]
}

// mustTrack runs a tracker until the test ends.
func mustTrack(t *testing.T, options track.Options) *track.Tracker {
	t.Helper()
	tracker, err := track.New(options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- tracker.Run(ctx) }()
	t.Cleanup(func() {
		if r, ok := options.Handler.(*recorder); ok {
			r.killAll()
		}
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	return tracker
}

// job is a shell that waits for a line before it runs its script.
type job struct{ *targets.Target }

// jobID is an id of a test's own, so that what another one left behind does
// not disturb it.
func jobID(t *testing.T) string { return fmt.Sprintf("%s-%d", t.Name(), os.Getpid()) }

// mustStart starts a shell that belongs to the test's job and waits. It returns
// when the shell says that it does: Start does so earlier, while the kernel may
// not have told of the exec yet, which would then replace the followed image.
func mustStart(t *testing.T, script string, env ...string) *job {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", "echo; read line; "+script)
	cmd.Env = append(os.Environ(), "ATTUNE_JOB="+jobID(t))
	cmd.Env = append(cmd.Env, env...)
	j := &job{targets.Launch(t, cmd)}
	j.Expect(t, "")
	return j
}

func (j *job) pid() int { return j.PID }

// run lets the script begin.
func (j *job) run(t *testing.T) {
	t.Helper()
	if err := j.Say("go"); err != nil {
		t.Fatal(err)
	}
}

// killAll ends what a test has left.
func (r *recorder) killAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for handle, held := range r.held {
		if r.ended[handle] == nil && held != nil {
			held.Signal(unix.SIGKILL)
		}
	}
}

func mustFollow(t *testing.T, tracker *track.Tracker, pid int) uint64 {
	t.Helper()
	handle, err := tracker.Follow(t.Context(), pid)
	if err != nil {
		t.Fatal(err)
	}
	return handle
}

// mustBuild compiles a program of testdata.
func mustBuild(t *testing.T, source string, flags ...string) string {
	t.Helper()
	return targets.Build(t, filepath.Join("testdata", source), flags...)
}

func itoa(n int) string { return strconv.Itoa(n) }

func base(path string) string { return filepath.Base(path) }
