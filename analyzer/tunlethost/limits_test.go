// SPDX-License-Identifier: Apache-2.0

package tunlethost

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/attune-hpc/attune/internal/testing/patience"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

func TestLimits(t *testing.T) {
	limits := Limits{MemoryBytes: 100e6, CPU: 0.5}.withDefaults()
	type look struct {
		after    time.Duration
		resident uint64
		cpu      time.Duration
		want     string // of the error; empty: none
	}
	for name, looks := range map[string][]look{
		"quiet":           {{10 * time.Second, 15e6, 0, ""}, {20 * time.Second, 15e6, 0, ""}},
		"at the limits":   {{10 * time.Second, 100e6, 5 * time.Second, ""}, {20 * time.Second, 0, 10 * time.Second, ""}},
		"much memory":     {{time.Second, 100e6 + 1, 0, "100 MB of memory, of 100"}},
		"a burst":         {{time.Second, 0, time.Second, ""}, {9 * time.Second, 0, 5 * time.Second, ""}, {10 * time.Second, 0, 5 * time.Second, ""}},
		"busy":            {{9 * time.Second, 0, 9 * time.Second, ""}, {10 * time.Second, 0, 6 * time.Second, "60 % of a core over 10s, of 50"}},
		"busy later":      {{10 * time.Second, 0, 0, ""}, {20 * time.Second, 0, 9 * time.Second, "90 % of a core over 10s"}},
		"busy in between": {{10 * time.Second, 0, 5 * time.Second, ""}, {20 * time.Second, 0, 6 * time.Second, ""}},
	} {
		start := time.Unix(1000, 0)
		w := watcher{limits: limits, from: start}
		for _, l := range looks {
			err := w.look(start.Add(l.after), usage{resident: l.resident, cpu: l.cpu})
			if l.want == "" && err != nil || l.want != "" && (!errors.Is(err, errLimit) || !strings.Contains(err.Error(), l.want)) {
				t.Errorf("%s, after %v: %v, want %q", name, l.after, err, l.want)
			}
		}
	}
}

// What the start of a tunlet took is not held against it: here the tunlet is this
// process, which has taken something by the time that it is looked at.
func TestStartDoesNotCount(t *testing.T) {
	tn := &Tunlet{life: &running{proc: &process{pid: os.Getpid(), costs: newAccount()}}}
	used := time.Duration(0)
	patience.Until(t, "CPU time", func() bool {
		u, ok := tn.life.measure()
		used = u.cpu
		return ok && used > 0
	})
	if w := (Limits{}).watcher(tn.life); w.cpu < used {
		t.Errorf("the window begins at %v of CPU time, %v are used", w.cpu, used)
	}
}

// A tunlet that takes too much is ended and does not come back.
func TestTooMuchMemory(t *testing.T) {
	options := fast(testTunlet.Dir(t, "hog"))
	options.Limits.MemoryBytes = 100e6
	o := newObserver()
	h := New(options, o)
	if err := h.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	defer h.Stop()
	tn := receive(t, o.ready)
	if adj, err := os.ReadFile("/proc/" + strconv.Itoa(pidOf(tn)) + "/oom_score_adj"); err != nil || strings.TrimSpace(string(adj)) != killFirst {
		t.Errorf("oom_score_adj %q, %v", adj, err)
	}
	tick(t, tn)
	if g := receive(t, o.gone); !strings.Contains(g.reason, "MB of memory, of 100") {
		t.Errorf("gone %+v", g)
	}
	st := eventually(t, h, func(st *Status) bool { return st.GetState() == StateQuarantined })
	if st.GetRestarts() != 0 || !strings.Contains(st.GetReason(), "memory") || st.GetPeakResidentBytes() < 100e6 {
		t.Errorf("status %+v", st)
	}
}

// tick has a tunlet take what it may not. It may be ended before it has answered, and its
// connection closed.
func tick(t *testing.T, tn *Tunlet) {
	t.Helper()
	if _, err := tn.Service().Tick(context.Background(), &attunev1.TickRequest{}); err != nil && status.Code(err) != codes.Unavailable && status.Code(err) != codes.Canceled {
		t.Error(err)
	}
}

// One that is busy for longer than a tunlet may be is ended, too, and the host goes
// on to answer.
func TestTooMuchCPU(t *testing.T) {
	options := fast(testTunlet.Dir(t, "burner"))
	options.Limits.CPU, options.Limits.CPUWindow = 0.05, time.Second // a crowded machine gives it little
	o := newObserver()
	h := New(options, o)
	if err := h.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	defer h.Stop()
	tick(t, receive(t, o.ready))
	if g := receive(t, o.gone); !strings.Contains(g.reason, "% of a core over") {
		t.Errorf("gone %+v", g)
	}
	if st := eventually(t, h, func(st *Status) bool { return st.GetState() == StateQuarantined }); st.GetRestarts() != 0 {
		t.Errorf("status %+v", st)
	}
}

// What is allocated between two looks is bounded by the kernel: the node
// survives it.
func TestTooMuchMemoryAtOnce(t *testing.T) {
	options := fast(testTunlet.Dir(t, "glutton"))
	options.Limits.MemoryBytes = 100e6
	o := newObserver()
	h := New(options, o)
	if err := h.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	defer h.Stop()
	tn := receive(t, o.ready)
	if _, err := tn.Service().Tick(context.Background(), &attunev1.TickRequest{}); err == nil {
		t.Error("it got 4 GB")
	}
	receive(t, o.gone)
}

func TestUsage(t *testing.T) {
	u, ok := usageOf(os.Getpid())
	if !ok || u.resident == 0 || u.peak < u.resident || u.cpu < 0 {
		t.Errorf("own usage %+v, %v", u, ok)
	}
	if u, ok := usageOf(1 << 30); ok {
		t.Errorf("usage of nobody: %+v", u)
	}
}
