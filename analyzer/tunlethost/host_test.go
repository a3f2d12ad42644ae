// SPDX-License-Identifier: Apache-2.0

package tunlethost

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/attune-hpc/attune/analyzer/internal/tunletbuild"
	"github.com/attune-hpc/attune/internal/testing/patience"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// testTunlet is built once for all tests.
var testTunlet tunletbuild.Builder

func TestMain(m *testing.M) {
	if dir := os.Getenv("TUNLETHOST_TEST_DIR"); dir != "" {
		orphanHost(dir)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		testTunlet.Clean()
		os.Exit(code)
	}))
}

// observer collects what the host tells.
type observer struct {
	asleep chan sleeper
	ready  chan *Tunlet
	gone   chan goneEvent
}

// sleeper is a tunlet that is not of use yet.
type sleeper struct {
	info *attunev1.DescribeResponse
	wake func()
}

type goneEvent struct{ name, reason string }

func newObserver() *observer {
	return &observer{asleep: make(chan sleeper, 100), ready: make(chan *Tunlet, 100), gone: make(chan goneEvent, 100)}
}

func (o *observer) TunletAsleep(info *attunev1.DescribeResponse, wake func()) {
	o.asleep <- sleeper{info, wake}
}
func (o *observer) TunletReady(t *Tunlet) { o.ready <- t }
func (o *observer) TunletGone(name, reason string) {
	o.gone <- goneEvent{name, reason}
}

func receive[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	return patience.Receive(t, "what the host tells", from)
}

// fast returns options without long pauses.
func fast(dir string, names ...string) Options {
	return Options{Dirs: []string{dir}, Names: names, pause: time.Millisecond, maxFailures: 3, startTimeout: patience.Limit}
}

// eventually waits until a status is as wanted.
func eventually(t *testing.T, h *Host, want func(*Status) bool) (st *Status) {
	t.Helper()
	patience.Until(t, "a status", func() bool {
		st = h.Status()[0]
		return want(st)
	})
	return st
}

func TestRunAndStop(t *testing.T) {
	dir := testTunlet.Dir(t, "good")
	o := newObserver()
	h := New(fast(dir), o)
	if err := h.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	tn := receive(t, o.ready)
	if tn.Info().GetName() != "good" || tn.Info().GetVersion() != "0.0.1" {
		t.Errorf("info %v", tn.Info())
	}
	if _, err := tn.Service().Tick(context.Background(), &attunev1.TickRequest{}); err != nil {
		t.Error(err)
	}
	if err := alone(pidOf(tn)); err != nil {
		t.Error(err)
	}
	h.Stop()
	if g := receive(t, o.gone); g.name != "good" {
		t.Errorf("gone %+v", g)
	}
	if cost := h.Cost(); cost.CPU <= 0 || cost.PeakRSS == 0 {
		t.Errorf("it has cost %+v", cost)
	}
	st := h.Status()[0]
	if st.GetState() != StateStopped || st.GetPeakResidentBytes() == 0 || len(st.GetSha256()) != 64 || st.GetRestarts() != 0 {
		t.Errorf("status %+v", st)
	}
	if err := syscall.Kill(pidOf(tn), 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the process is still there: %v", err)
	}
}

// An answer that would fill the memory of the Analyzer is not taken; the next
// call is answered as ever.
func TestAnswerIsBounded(t *testing.T) {
	o := newObserver()
	h := New(fast(testTunlet.Dir(t, "verbose")), o)
	if err := h.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	defer h.Stop()
	tn := receive(t, o.ready)
	for _, want := range []codes.Code{codes.ResourceExhausted, codes.OK} {
		if _, err := tn.Service().Tick(context.Background(), &attunev1.TickRequest{}); status.Code(err) != want {
			t.Errorf("tick: %v, want %v", err, want)
		}
	}
}

// pidOf returns the process of a tunlet that has it for itself.
func pidOf(t *Tunlet) int { return t.life.(*running).proc.pid }

// alone checks that a process is in a process group of its own, in our session, and does not
// hold our standard input.
func alone(pid int) error {
	group, err := unix.Getpgid(pid)
	session, sidErr := unix.Getsid(pid)
	ours, ownErr := unix.Getsid(0)
	if err := errors.Join(err, sidErr, ownErr); err != nil || group != pid || session != ours {
		return fmt.Errorf("group %d of session %d, want %d of %d: %w", group, session, pid, ours, err)
	}
	stdin, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/0", pid))
	if err != nil || stdin != os.DevNull {
		return fmt.Errorf("standard input is %q, want %s (%w)", stdin, os.DevNull, err)
	}
	return nil
}

// TestStopWhileStarting stops a host whose tunlet does not answer. A stop that
// waited for the start would outlast the test.
func TestStopWhileStarting(t *testing.T) {
	options := fast(testTunlet.Dir(t, "hangstart"))
	options.startTimeout = 24 * time.Hour
	h := New(options, newObserver())
	if err := h.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	h.Stop()
	if st := h.Status()[0]; st.GetState() != StateStarting || st.GetVersion() != "" || st.GetReason() == "" {
		t.Errorf("status %+v, want it starting, with a reason", st)
	}
}

// TestFailures starts tunlets that do not come up.
func TestFailures(t *testing.T) {
	dir := testTunlet.Dir(t, "crashstart", "hangstart", "garbage", "badversion", "wrongname", "badoptions", "silent", "sleepy", "newapi")
	tests := []struct {
		name, state, reason string
		restarts            uint32
	}{
		{name: "crashstart", state: StateQuarantined, reason: "exit status 3: panic: no licence found", restarts: 2},
		{name: "hangstart", state: StateQuarantined, reason: "no answer within 300ms", restarts: 2},
		{name: "garbage", state: StateQuarantined, reason: "", restarts: 2},
		{name: "badversion", state: StateRefused, reason: `speaks version "99" of the tunlet API`},
		{name: "wrongname", state: StateRefused, reason: `calls itself "somebody"`},
		{name: "badoptions", state: StateRefused, reason: "it does not like map[a:b]"},
		{name: "silent", state: StateRefused, reason: `option "a": unknown; there is none`},
		{name: "sleepy", state: StateRefused, reason: `option n: "10" is not at most 9`},
		{name: "newapi", state: StateRefused, reason: "tunlet speaks API version 2"},
		{name: "nosuch", state: StateMissing, reason: "no attune-tunlet-nosuch in " + dir + "; there are: badoptions, "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			opts := fast(dir, tt.name)
			if tt.name == "hangstart" {
				opts.startTimeout = 300 * time.Millisecond
			}
			opts.Config = map[string]map[string]string{"badoptions": {"a": "b"}, "silent": {"a": "b"}, "sleepy": {"n": "10"}}
			h := New(opts, newObserver())
			if err := h.Start(context.Background()); (err != nil) != (tt.state == StateMissing) {
				t.Errorf("start: %v", err)
			}
			defer h.Stop()
			st := eventually(t, h, func(st *Status) bool { return st.GetState() == tt.state })
			if !strings.Contains(st.GetReason(), tt.reason) || st.GetRestarts() != tt.restarts {
				t.Errorf("status %+v, want reason %q, %d restarts", st, tt.reason, tt.restarts)
			}
		})
	}
}

// A tunlet has not run while it waited for a place and failed to come up: however long that takes,
// it counts towards quarantine.
func TestStartIsNotRun(t *testing.T) {
	h := New(fast(testTunlet.Dir(t, "crashstart")), newObserver())
	if err := h.prepare(); err != nil {
		t.Fatal(err)
	}
	defer h.Stop()
	ran, err := h.runOnce(t.Context(), h.starter(Find(h.opts.Dirs, h.opts.Names)[0]), &Status{})
	if ran != 0 || err == nil {
		t.Errorf("ran %v: %v", ran, err)
	}
}

// TestRestart kills a tunlet until it is put into quarantine.
func TestRestart(t *testing.T) {
	o := newObserver()
	h := New(fast(testTunlet.Dir(t, "good")), o)
	if err := h.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	defer h.Stop()
	for range 3 {
		receive(t, o.ready).Kill("a call took too long")
		want := goneEvent{name: "good", reason: "a call took too long"}
		if g := receive(t, o.gone); g != want {
			t.Errorf("gone %+v, want %+v", g, want)
		}
	}
	st := eventually(t, h, func(st *Status) bool { return st.GetState() == StateQuarantined })
	if st.GetRestarts() != 2 || !strings.Contains(st.GetReason(), "failed 3 times") {
		t.Errorf("status %+v", st)
	}
}

// TestNoOrphans kills a host without warning; its tunlet must end with it.
func TestNoOrphans(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "TUNLETHOST_TEST_DIR="+testTunlet.Dir(t, "good"), "TMPDIR="+t.TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Fscan(out, &pid); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	patience.Until(t, "the end of a tunlet without a host", func() bool { return !runs(pid) })
}

// runs reports whether a process runs; a zombie does not.
func runs(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(data), ") Z ")
}

// orphanHost is a host in a process of its own: it tells its tunlet's pid and
// waits to be killed.
func orphanHost(dir string) {
	o := newObserver()
	h := New(fast(dir), o)
	if err := h.Start(context.Background()); err != nil {
		panic(err)
	}
	fmt.Println(pidOf(<-o.ready))
	select {}
}

// TestEnvironment checks that nothing of the application's reaches a tunlet.
func TestEnvironment(t *testing.T) {
	t.Setenv("LD_PRELOAD", "/x.so")
	t.Setenv("ATTUNE_SOCKET", "/x")
	t.Setenv("LANG", "C")
	env := strings.Join(environment("/tmp/d"), "\n")
	if strings.Contains(env, "LD_PRELOAD") || strings.Contains(env, "ATTUNE_") || !strings.Contains(env, "LANG=C") {
		t.Errorf("environment:\n%s", env)
	}
}
