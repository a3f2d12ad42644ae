// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

func TestWaitIn(t *testing.T) {
	for _, row := range []struct {
		function, descriptor string
		want                 cause
	}{
		{"futex_do_wait", "", forLocks},
		{"futex_wait_queue_me", "", forLocks},
		{"anon_pipe_read", "", forPipes},
		{"unix_stream_read_generic", "", forPipes},
		{"poll_schedule_timeout.constprop.0", "", forEvents},
		{"ep_poll", "", forEvents},
		{"hrtimer_nanosleep", "", forSleep},
		{"folio_wait_bit_common", "", forDisk},
		{"io_schedule", "", forDisk},
		{"rpc_wait_bit_killable", "", forDisk},
		{"inet_csk_accept", "", forNetwork},
		{"wait_woken", "socket:[17]", forNetwork},
		{"wait_woken", "/dev/pts/3", forOther},
		{"do_wait", "", forOther},
		{"0", "", unseen},
		{"", "", unseen},
	} {
		if got := waitIn(row.function, func() string { return row.descriptor }); got != row.want {
			t.Errorf("%s on %q: %d, want %d", row.function, row.descriptor, got, row.want)
		}
	}
}

// TestSpans: the parts add up to the wall time, CPU time that ticks tell late is not time
// without work, and what nobody could see goes to what is seen next.
func TestSpans(t *testing.T) {
	const ms = time.Millisecond
	why := func(c cause) func() cause { return func() cause { return c } }
	for _, row := range []struct {
		name   string
		add    func(*spans)
		ran    float64
		queued float64
		waited map[cause]float64
	}{
		{"nothing but work, told by ticks", func(s *spans) {
			s.add(0.05, 40*ms, 0, why(forOther))
			s.add(0.10, 100*ms, 0, why(forOther))
			s.add(0.15, 150*ms, 0, why(forOther))
		}, 0.14, 0, map[cause]float64{forOther: 0.01}},
		{"more threads than one", func(s *spans) { s.add(0.1, 300*ms, 100*ms, why(forLocks)) }, 0.075, 0.025, nil},
		{"seen later", func(s *spans) {
			s.add(0.1, 50*ms, 0, why(unseen))
			s.add(0.2, 50*ms, 0, why(forDisk))
		}, 0.05, 0, map[cause]float64{forDisk: 0.15}},
		{"a process with its wait has ended", func(s *spans) {
			s.add(0.1, 0, 80*ms, why(forSleep))
			s.add(0.2, 0, 10*ms, why(forSleep))
		}, 0, 0.08, map[cause]float64{forSleep: 0.12}},
	} {
		var s spans
		row.add(&s)
		near := func(what string, got, want float64) {
			if math.Abs(got-want) > 1e-9 {
				t.Errorf("%s: %s %v s, want %v", row.name, what, got, want)
			}
		}
		near("ran", s.ran, row.ran)
		near("queued", s.queued, row.queued)
		for c, got := range s.waited {
			near("waited", got, row.waited[cause(c)])
		}
	}
}

// TestSpansAfterTheEnd: looks at what the command left behind add nothing to its time.
func TestSpansAfterTheEnd(t *testing.T) {
	a := &account.Account{
		WallSeconds: 1, CPUSeconds: new(0.5), SystemSeconds: new(0.1), Accuracy: map[string]account.Accuracy{}, Sources: map[string]string{},
	}
	var s spans
	s.add(2, time.Second, 0, func() cause { return forSleep })
	s.fill(a)
	if sum := *a.Time.Computing + *a.Time.Kernel + *a.Time.Sleep; math.Abs(sum-1) > 1e-9 {
		t.Errorf("the parts are %v s of 1 s", sum)
	}
}

// TestNoTimeIsNegative: what rounding leaves of a look that was full is no time, since an
// archive refuses an account with less than none.
func TestNoTimeIsNegative(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		var s spans
		at, cpu, queue := 0.0, time.Duration(0), time.Duration(0)
		for range 5 {
			passed := r.Float64()
			at += passed
			cpu += time.Duration(passed * float64(time.Second) * (1 + r.Float64()))
			queue += time.Duration(r.Float64() * float64(time.Second))
			s.add(at, cpu, queue, func() cause { return unseen })
		}
		if s.unknown < 0 {
			t.Fatalf("%v s of which nothing is known", s.unknown)
		}
	}
}

// TestTimeOfPrograms: real programs that wait for one thing most of the time; for longer
// where the machine leaves no processor for the looks at them.
func TestTimeOfPrograms(t *testing.T) {
	python := targets.Python(t)
	for _, row := range []struct {
		name, script string // of python3, that waits for as many seconds as its argument says
		of           func(*account.Time) *float64
	}{
		{"sleep", "import time; time.sleep(wait)", func(a *account.Time) *float64 { return a.Sleep }},
		{"events", "import select; select.select([], [], [], wait)", func(a *account.Time) *float64 { return a.Events }},
		{"locks", "import threading; l = threading.Lock(); l.acquire(); l.acquire(timeout=wait)", func(a *account.Time) *float64 { return a.Locks }},
		{"network", "import socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen()\nimport threading\nthreading.Timer(wait, lambda: socket.create_connection(s.getsockname())).start(); s.accept()", func(a *account.Time) *float64 { return a.Network }},
	} {
		t.Run(row.name, func(t *testing.T) {
			for wait := 500 * time.Millisecond; ; wait *= 2 {
				a, exit := mustRun(t, Options{WithoutKernel: true, NoGroup: true}, python, "-c", "import sys; wait = float(sys.argv[1]); "+row.script, fmt.Sprint(wait.Seconds()))
				if exit.Code != 0 {
					t.Fatalf("exit %+v", exit)
				}
				sum := 0.0
				for _, part := range []*float64{a.Time.Computing, a.Time.Kernel, a.Time.CPU, a.Time.Disk, a.Time.Network, a.Time.Pipes, a.Time.Events, a.Time.Locks, a.Time.Sleep, a.Time.Other} {
					sum += *part
				}
				if math.Abs(sum-a.WallSeconds) > 1e-6 {
					t.Errorf("the parts are %v s of %v s", sum, a.WallSeconds)
				}
				seen := *row.of(&a.Time)
				if seen >= wait.Seconds()/2 {
					return
				}
				if wait > patience.Limit/4 {
					t.Fatalf("%v s of %s are told: %+v", seen, wait, a)
				}
			}
		})
	}
}
