// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/attune-hpc/attune/analyzer/core"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestManyChangedProcesses is a bag of tasks that are changed one and all.
func TestManyChangedProcesses(t *testing.T) {
	r := newRig(t, core.ModeTune)
	r.connect("ac1")
	for n := uint64(1); n <= maxChanged+300; n++ {
		r.session.Publish("ac1", &attunev1.PublishRequest{Event: &attunev1.PublishRequest_ProcessStarted{ProcessStarted: &attunev1.Process{Handle: n}}})
		r.session.post(func() {
			id := fmt.Sprint("c", n)
			r.session.processes.byID[n].changes = []string{id}
			r.session.processes.changedIn[id] = n
		})
		r.session.Publish("ac1", &attunev1.PublishRequest{Event: &attunev1.PublishRequest_ProcessEnded{ProcessEnded: &attunev1.ProcessEnded{Process: n}}})
	}
	rep := r.report()
	if len(rep.Processes) != maxChanged || len(rep.Remarks) != 1 {
		t.Errorf("%d processes, remarks %+v", len(rep.Processes), rep.Remarks)
	}
	r.session.post(func() {
		if n := len(r.session.processes.changedIn); n != maxChanged {
			t.Errorf("%d changes are remembered, want %d", n, maxChanged)
		}
		r.session.decider.undo(core.Undo{Request: "r1", Changes: []string{"c1"}})
		if n := len(r.session.decider.requests); n != 0 {
			t.Error("the undo in a process that is forgotten is never answered")
		}
	})
	r.report()
}

// TestNewsOfSeveral come in one message.
func TestNewsOfSeveral(t *testing.T) {
	r := newRig(t, core.ModeTune)
	r.connect("ac1")
	status := int32(3 << 8)
	r.session.Publish("ac1", &attunev1.PublishRequest{Event: &attunev1.PublishRequest_News{News: &attunev1.NewsBatch{News: []*attunev1.PublishRequest{
		{Event: &attunev1.PublishRequest_ProcessStarted{ProcessStarted: &attunev1.Process{Handle: 1, Executable: "/bin/one"}}},
		{Event: &attunev1.PublishRequest_ProcessStarted{ProcessStarted: &attunev1.Process{Handle: 2, Executable: "/bin/two"}}},
		{Event: &attunev1.PublishRequest_ProcessEnded{ProcessEnded: &attunev1.ProcessEnded{Process: 1, WaitStatus: &status}}},
	}}}})
	rep := r.report()
	if len(rep.Processes) != 2 {
		t.Fatalf("processes: %+v", rep.Processes)
	}
	one, two := rep.Processes[0], rep.Processes[1]
	if one.Exe != "/bin/one" || one.Exit == nil || two.Exe != "/bin/two" || two.Exit != nil {
		t.Errorf("got %+v and %+v", one, two)
	}
}

// paces lists what a controller was told of how often to sample.
func (l *link) paces() (periods []time.Duration) {
	for _, w := range l.wanted() {
		periods = append(periods, time.Duration(w.GetPeriodNanos()))
	}
	return slices.Compact(periods)
}

// TestShortProcessesCostNoHurry: a script starts one after the other, and no tunlet
// hears of any, until one lives.
func TestShortProcessesCostNoHurry(t *testing.T) {
	r := newRig(t, core.ModeTune)
	a := newScripted(t, "a", nil)
	r.session.TunletReady(a)
	l := r.connect("ac1", 1)
	publish := func(m *attunev1.PublishRequest) { r.session.Publish("ac1", m) }
	const short = 100
	for handle := uint64(2); handle < 2+short; handle++ {
		publish(&attunev1.PublishRequest{Event: &attunev1.PublishRequest_ProcessStarted{ProcessStarted: &attunev1.Process{Handle: handle}}})
		r.tick()
		publish(&attunev1.PublishRequest{Event: &attunev1.PublishRequest_ProcessEnded{ProcessEnded: &attunev1.ProcessEnded{Process: handle}}})
	}
	publish(&attunev1.PublishRequest{Event: &attunev1.PublishRequest_ProcessStarted{ProcessStarted: &attunev1.Process{
		Handle: 2 + short, Identity: &attunev1.ProcessIdentity{Pid: 7},
	}}})
	r.grow()
	r.settle("a")
	want := []time.Duration{r.session.tickEvery, restPeriod, r.session.tickEvery}
	if diff := cmp.Diff(want, l.paces()); diff != "" {
		t.Errorf("told to sample every (-want +got):\n%s", diff)
	}
	told := []string{"application s1 tune", "process 1 pid 1 update false", fmt.Sprintf("process %d pid 7 update false", 2+short)}
	if diff := cmp.Diff(told, get(a, func() []string { return a.told })); diff != "" {
		t.Errorf("told: %s", diff)
	}
}

// TestHitIntroduces: what a measure point has seen in a young process comes after the
// news of it.
func TestHitIntroduces(t *testing.T) {
	r := newRig(t, core.ModeTune)
	a := newScripted(t, "a", &attunev1.Reaction{AddPoints: []*attunev1.MeasurePoint{hook("mine", "malloc")}})
	r.session.TunletReady(a)
	r.settle("a")
	r.connect("ac1", 7)
	r.records("ac1", 7, 1)
	r.report()
	r.settle("a")
	if diff := cmp.Diff([]string{"application s1 tune", "process 1 pid 7 update false"}, get(a, func() []string { return a.told })); diff != "" {
		t.Errorf("told: %s", diff)
	}
	if n := recordsOf(a); n != 1 {
		t.Errorf("%d records", n)
	}
}

func TestProgramOf(t *testing.T) {
	info := func(sum string, command ...string) *attunev1.Process {
		return &attunev1.Process{ExecutableSha256: sum, CommandLine: command}
	}
	rank := info("python", "python3", "job.py", "7")
	rank.Rank = new(int32)
	one := programOf(info("python", "python3", "job.py", "7"))
	tests := []struct {
		name  string
		other *attunev1.Process
		same  bool
	}{
		{"the same command", info("python", "python3", "job.py", "7"), true},
		{"another part of the input", info("python", "python3", "job.py", "12"), true},
		{"another script", info("python", "python3", "other.py", "7"), false},
		{"more arguments", info("python", "python3", "job.py", "7", "7"), false},
		{"other words", info("python", "python3", "job.py", "-v"), false},
		{"another executable", info("pypy", "python3", "job.py", "7"), false},
		{"an executable that is not known yet", info("", "python3", "job.py", "7"), false},
		{"a rank", rank, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := programOf(tt.other); (got == one) != tt.same {
				t.Errorf("%q and %q", got, one)
			}
		})
	}
	if unknown := programOf(info("", "a")); unknown != "" || programOf(rank) != "" {
		t.Errorf("siblings without a name: %q, %q", unknown, programOf(rank))
	}
}
