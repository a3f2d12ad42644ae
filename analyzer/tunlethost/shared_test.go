// SPDX-License-Identifier: Apache-2.0

package tunlethost

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/attune-hpc/attune/internal/testing/patience"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

// site is sessions that share a pool.
type site struct {
	t    *testing.T
	pool *Pool
	opts Options
}

// newSite returns one whose sessions have the tunlet "one" of a package.
func newSite(t *testing.T, limits Limits) *site {
	t.Helper()
	dir := testTunlet.Dir(t, "good")
	testTunlet.Package(t, dir)
	pool, err := NewPool(PoolOptions{Limits: limits, MaxOwn: 1, startTimeout: patience.Limit, idle: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	opts := fast(dir, "one")
	opts.Pool, opts.Limits, opts.pause = pool, limits, time.Millisecond
	return &site{t: t, pool: pool, opts: opts}
}

// sharer is a session with a tunlet that shares its process.
type sharer struct {
	*observer
	t      *testing.T
	host   *Host
	tunlet *Tunlet
}

// session begins one whose application is called by a command.
func (s *site) session(command ...string) *sharer {
	s.t.Helper()
	o := newObserver()
	n := &sharer{observer: o, t: s.t, host: New(s.opts, o)}
	if err := n.host.Start(context.Background()); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(n.host.Stop)
	n.await(command...)
	return n
}

// await waits for the tunlet to be there, and tells it what it runs beside.
func (n *sharer) await(command ...string) {
	n.t.Helper()
	n.tunlet = receive(n.t, n.ready)
	_, err := n.tunlet.Service().ApplicationStarted(n.t.Context(), &attunev1.ApplicationStartedRequest{
		Application: &attunev1.Application{SessionId: "s", Command: command},
	})
	if err != nil {
		n.t.Fatal(err)
	}
}

// tick returns what the tunlet remarks.
func (n *sharer) tick(ctx context.Context) (string, error) {
	resp, err := n.tunlet.Service().Tick(ctx, &attunev1.TickRequest{UnixNano: 1})
	texts := []string{}
	for _, r := range resp.GetReaction().GetRemarks() {
		texts = append(texts, r.GetText())
	}
	return strings.Join(texts, "; "), err
}

// ticks makes a call and expects it to be the tunlet's n-th.
func (n *sharer) ticks(want string) {
	n.t.Helper()
	if got, err := n.tick(n.t.Context()); got != want || err != nil {
		n.t.Errorf("got %q, %v; want %q", got, err, want)
	}
}

// pid is that of the process that the tunlet is in.
func (n *sharer) pid() int { return n.tunlet.life.(*instance).shared.run.proc.pid }

func packageProcesses(t *testing.T) []int { return children(t, sdk.PackageProgram) }

// Thirty-two sessions have one process, and each a tunlet of its own in it, which goes
// with its session.
func TestSessionsShareAProcess(t *testing.T) {
	s := newSite(t, Limits{})
	var all []*sharer
	for range 32 {
		all = append(all, s.session("anything"))
	}
	for i, n := range all {
		for range i%3 + 1 {
			if _, err := n.tick(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if pids := packageProcesses(t); len(pids) != 1 || pids[0] != all[7].pid() {
		t.Errorf("processes %v for 32 sessions", pids)
	}
	all[0].ticks("tick 2")
	all[2].ticks("tick 4")
	all[2].host.Stop()
	if _, err := all[2].tick(t.Context()); status.Code(err) != codes.Unavailable {
		t.Errorf("after the session's end: %v", err)
	}
	all[1].ticks("tick 3")
	if cost := all[1].host.Cost(); cost.CPU <= 0 || cost.CPU > time.Minute {
		t.Errorf("charged with %v", cost.CPU)
	}
	for _, n := range all {
		n.host.Stop()
	}
	vanish(t)
}

// The kernel's limit grows with the one that the process is held to.
func TestMemoryOfManySessions(t *testing.T) {
	limits := Limits{MemoryBytes: 100e6}
	s := newSite(t, limits)
	for n := uint64(1); n <= 3; n++ {
		pid := s.session("anything").pid()
		var got unix.Rlimit
		if err := unix.Prlimit(pid, unix.RLIMIT_DATA, nil, &got); err != nil {
			t.Fatal(err)
		}
		if want := limits.MemoryBytes + headroom + n*instanceBytes; got.Cur != want {
			t.Errorf("%d bytes for %d sessions, want %d", got.Cur, n, want)
		}
	}
}

// vanish waits until no process of the package is left.
func vanish(t *testing.T) {
	t.Helper()
	patience.Until(t, "the end of processes that nobody needs", func() bool { return len(packageProcesses(t)) == 0 })
}

// A panic ends the tunlet of its session, which gets a new one in the same process;
// the others do not notice.
func TestPanicStaysInItsSession(t *testing.T) {
	s := newSite(t, Limits{})
	good, bad := s.session("anything"), s.session("panic")
	good.ticks("tick 1")
	if _, err := bad.tick(t.Context()); status.Code(err) != codes.Internal {
		t.Errorf("the call that panicked: %v", err)
	}
	if g := receive(t, bad.gone); !strings.Contains(g.reason, "panic in Tick: no licence found") {
		t.Errorf("gone %+v", g)
	}
	bad.await("anything")
	bad.ticks("tick 1")
	good.ticks("tick 2")
	if good.pid() != bad.pid() || len(good.gone) > 0 {
		t.Errorf("processes %d and %d; the other one: %d gone", good.pid(), bad.pid(), len(good.gone))
	}
	if st := bad.host.Status()[0]; st.GetRestarts() != 1 || st.GetState() != StateRunning {
		t.Errorf("status %+v", st)
	}
}

// One that panics again and again is put into quarantine, in its session only.
func TestQuarantineOfOneSession(t *testing.T) {
	s := newSite(t, Limits{})
	good, bad := s.session("anything"), s.session("panic")
	for i := range 3 {
		_, _ = bad.tick(t.Context())
		receive(t, bad.gone)
		if i < 2 {
			bad.await("panic")
		}
	}
	eventually(t, bad.host, func(st *Status) bool { return st.GetState() == StateQuarantined })
	good.ticks("tick 1")
}

// A call that does not return holds up nobody else. When the session has given it up,
// tunlets of later sessions are begun in another process, and the first one ends with
// the last session that it has.
func TestHangHoldsUpNobody(t *testing.T) {
	for _, command := range []string{"hang", "spin"} {
		t.Run(command, func(t *testing.T) {
			s := newSite(t, Limits{CPU: 100}) // what spins is not to be ended for that
			begun := filepath.Join(t.TempDir(), "begun")
			good, bad := s.session("anything"), s.session(command, begun)
			hung := make(chan struct{})
			go func() { defer close(hung); _, _ = bad.tick(t.Context()) }()
			appear(t, begun)
			good.ticks("tick 1")
			good.ticks("tick 2")
			s.giveUp(bad)
			good.ticks("tick 3")
			bad.ticks("tick 1")
			later := s.session("anything")
			if later.pid() == good.pid() {
				t.Error("a tunlet was begun beside a call that does not return")
			}
			for _, n := range []*sharer{good, bad, later} {
				n.host.Stop()
			}
			vanish(t)
			<-hung
		})
	}
}

// appear waits for a file.
func appear(t *testing.T, file string) {
	t.Helper()
	patience.Until(t, file, func() bool {
		_, err := os.Stat(file)
		return err == nil
	})
}

// giveUp has a session give its tunlet up, and waits until the pool knows what it has
// left behind.
func (s *site) giveUp(n *sharer) {
	s.t.Helper()
	left := n.tunlet.life.(*instance).shared
	n.tunlet.Kill("no answer to Tick")
	if g := receive(s.t, n.gone); g.reason != "no answer to Tick" {
		s.t.Errorf("gone %+v", g)
	}
	n.await("anything")
	patience.Until(s.t, "word of a call that does not return", func() bool {
		s.pool.mu.Lock()
		defer s.pool.mu.Unlock()
		return left.retired
	})
}

// When the process ends, each session gets a tunlet again, in one process.
func TestProcessEnds(t *testing.T) {
	for _, how := range []string{"killed", "lose"} {
		t.Run(how, func(t *testing.T) {
			s := newSite(t, Limits{})
			sessions := []*sharer{s.session(how), s.session("anything")}
			first := sessions[0].pid()
			if how == "killed" {
				if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
			} else {
				_, _ = sessions[0].tick(t.Context())
			}
			for _, n := range sessions {
				receive(t, n.gone)
				n.await("anything")
				n.ticks("tick 1")
			}
			if pids := packageProcesses(t); !slices.Equal(pids, []int{sessions[1].pid()}) || pids[0] == first {
				t.Errorf("processes %v, before %d", pids, first)
			}
		})
	}
}

// However often the process ends, no tunlet is put into quarantine for it: what did it
// may be another's. A failure of its own counts as ever.
func TestProcessEndsAgainAndAgain(t *testing.T) {
	s := newSite(t, Limits{})
	n := s.session("panic")
	for i := range 2 * s.opts.maxFailures {
		if err := syscall.Kill(n.pid(), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if g := receive(t, n.gone); g.reason != "the process that the tunlets share: signal: killed" {
			t.Fatalf("gone %+v at end %d", g, i+1)
		}
		n.await("panic")
	}
	_, _ = n.tick(t.Context())
	if g := receive(t, n.gone); !strings.Contains(g.reason, "panic in Tick") {
		t.Errorf("gone %+v at its first failure", g)
	}
	n.await("anything")
	n.ticks("tick 1")
}

// The same goes for a process that does not start in time.
func TestProcessDoesNotStart(t *testing.T) {
	s := newSite(t, Limits{})
	s.pool.opts.startTimeout = time.Nanosecond
	o := newObserver()
	h := New(s.opts, o)
	if err := h.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Stop)
	st := eventually(t, h, func(st *Status) bool {
		return st.GetState() == StateQuarantined || int(st.GetRestarts()) > s.opts.maxFailures
	})
	if want := "the process that the tunlets share: no answer within 1ns"; st.GetState() == StateQuarantined || st.GetReason() != want {
		t.Errorf("status %+v, want the reason %q", st, want)
	}
}

// CPU time is charged to the session whose call took it, once the call is over; what no
// call was charged with ends the process.
func TestSharedProcessTakesTooMuch(t *testing.T) {
	limits := Limits{CPU: 0.05, CPUWindow: time.Second} // a crowded machine gives it little
	s := newSite(t, limits)
	o := newObserver()
	h := New(s.opts, o)
	if err := h.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Stop)
	go func() { // unless its start has taken as much
		spins := &sharer{observer: o}
		select {
		case spins.tunlet = <-o.ready:
		case <-t.Context().Done():
			return
		}
		_, _ = spins.tunlet.Service().ApplicationStarted(t.Context(), &attunev1.ApplicationStartedRequest{
			Application: &attunev1.Application{SessionId: "s", Command: []string{"spin"}},
		})
		_, _ = spins.tick(t.Context())
	}()
	if g := receive(t, o.gone); !strings.Contains(g.reason, "the process that the tunlets share: it took more than a tunlet may") {
		t.Errorf("gone %+v", g)
	}
}

// A tunlet that is no link to a package has a process for itself, of which there are
// only so many.
func TestOwnProcessesAreBounded(t *testing.T) {
	s := newSite(t, Limits{})
	s.opts.Names = []string{"good"}
	start := func() (*Host, *observer) {
		o := newObserver()
		h := New(s.opts, o)
		if err := h.Start(context.Background()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(h.Stop)
		return h, o
	}
	first, o := start()
	receive(t, o.ready)
	second, later := start()
	eventually(t, second, func(st *Status) bool { return st.GetState() == StateStarting })
	if len(later.ready) > 0 || len(children(t, "attune-tunlet-good")) != 1 {
		t.Error("there are two processes, one is allowed")
	}
	first.Stop()
	receive(t, later.ready)
	if pids := packageProcesses(t); len(pids) > 0 {
		t.Errorf("processes %v of a package that nobody uses", pids)
	}
}

// TestEndedCallBlamesNobody: a call that ends with its session does not wait whether the process
// that it was made to has ended.
func TestEndedCallBlamesNobody(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	said := status.FromContextError(ctx.Err()).Err()
	if err := new(shared).blame(ctx, said); !errors.Is(err, said) || errors.Is(err, errShared) {
		t.Errorf("%v, want %v", err, said)
	}
}
