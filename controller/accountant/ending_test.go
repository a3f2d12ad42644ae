// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/patience"
)

// looks is a source that shows what is in it, one look after the other.
type looks struct {
	source
	list []now
}

func (l *looks) look() (now, error) {
	n := l.list[0]
	l.list = l.list[1:]
	return n, nil
}

// TestLookThatLacks: one look lacks most of what was taken, since a process ended meanwhile; the
// next one has it. Neither tells of more cores than there are, and no limit of cores is exceeded.
func TestLookThatLacks(t *testing.T) {
	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	idle := exec.Command("sleep", "infinity")
	if err := idle.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = idle.Process.Kill()
		_ = idle.Wait()
	})
	lives := living{pid: idle.Process.Pid}
	for _, row := range []struct {
		name  string
		lacks func(n *now)
	}{
		{"between the sum and the list", func(n *now) { n.moved = true }},
		{"ended and reaped", func(n *now) { n.ending = []living{{pid: gone.Process.Pid}} }},
		{"reaped since it was listed", func(n *now) { n.alive = append(n.alive, living{pid: gone.Process.Pid}) }},
		{"without root, reaped since it was listed", func(n *now) { n.alive = append(n.alive, living{pid: gone.Process.Pid, whole: true}) }},
		{"without root, waited for since it was listed", func(n *now) { n.unwaited = []int{gone.Process.Pid} }},
	} {
		t.Run(row.name, func(t *testing.T) {
			runtime.LockOSThread() // of whose CPU time it is seen whether a look waited for a CPU
			defer runtime.UnlockOSThread()
			const ended, period = time.Minute, 2 * coresWindow // what a look waits is a part of it
			var from looks
			for i := range 10 {
				n := now{alive: []living{lives}, done: taken{cpu: ended + time.Duration(i)*period}}
				if i == 5 {
					n.done.cpu -= ended
					row.lacks(&n)
				}
				from.list = append(from.list, n)
			}
			var shows []account.Row
			options := Options{Limits: []Limit{{Field: "cores_peak", Max: 1.5, Soft: true}}, Watch: func(r account.Row) { shows = append(shows, r) }}
			begin := time.Now()
			// It has looked before the minute's end.
			s := sampler{
				options: options, source: &from, group: &group{}, started: begin, times: make(map[string]float64),
				enforcer: newEnforcer(&options, &group{}), shown: newShown(t.Context(), &options, nil),
				window: reading{taken: taken{cpu: ended}}, last: reading{taken: taken{cpu: ended}},
				spans: spans{cpu: ended}, history: history{cpu: ended},
			}
			for i := range 10 {
				s.sample(begin.Add(time.Duration(i) * period))
			}
			if len(from.list) > 0 || s.cores == nil || *s.cores > 1.5 || s.enforcer.excesses[0] != (excess{}) {
				t.Errorf("%v cores at most, excess %v", s.cores, s.enforcer.excesses[0])
			}
			for _, m := range s.history.list {
				if m.Cores < 0.5 || m.Cores > 1.5 {
					t.Errorf("the history has %+v", m)
				}
			}
			for _, r := range shows {
				if r.Cores != nil && (*r.Cores < 0.5 || *r.Cores > 1.5) {
					t.Errorf("the series has %v cores after %v s", *r.Cores, r.Seconds)
				}
			}
			idle := s.spans.unknown
			for _, waited := range s.spans.waited {
				idle += waited
			}
			if len(s.history.list) < 5 || len(shows) < 5 || idle > period.Seconds()/2 {
				t.Errorf("%d moments, %d rows, nothing ran for %v s", len(s.history.list), len(shows), idle)
			}
		})
	}
}

// TestNoLookIsWhole: where threads end all the time, looks that are not whole have to do.
func TestNoLookIsWhole(t *testing.T) {
	const period = coresWindow + time.Millisecond
	var from looks
	for i := range 30 {
		from.list = append(from.list, now{alive: []living{{pid: os.Getpid(), whole: true}}, moved: true, done: taken{cpu: time.Duration(i) * period}})
	}
	var options Options
	begin := time.Now()
	s := sampler{
		options: options, source: &from, group: &group{}, started: begin, times: make(map[string]float64),
		enforcer: newEnforcer(&options, &group{}), shown: newShown(t.Context(), &options, nil),
	}
	for i := range 30 {
		s.sample(begin.Add(time.Duration(i) * period))
	}
	if s.cores == nil || len(s.history.list) == 0 {
		t.Errorf("cores %v, history %v", s.cores, s.history.list)
	}
}

// TestEndingCounts: what a process took counts until the kernel is done with it, its memory does not.
func TestEndingCounts(t *testing.T) {
	cmd := exec.Command("head", "-c", "300000000", "/dev/zero")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	patience.Until(t, "a zombie", func() bool {
		stat, err := procid.ReadStat(pid)
		return err == nil && stat.Zombie()
	})
	own, err := procid.CPUTime(pid)
	if err != nil {
		t.Error(err)
	}
	const part = time.Millisecond // that totals have, of a thread that the kernel is done with
	r := read(now{done: taken{cpu: part}, ending: []living{{pid: pid, done: taken{cpu: part}}}}, false)
	after, err := procid.CPUTime(pid) // it is a zombie before it is done
	if err = errors.Join(err, cmd.Wait()); err != nil {
		t.Error(err)
	}
	if r.taken.cpu < own || after < r.taken.cpu || own < 2*part || r.partial || r.processes != 0 || r.resident != 0 {
		t.Errorf("%+v, its clock had %v and %v", r, own, after)
	}
}
