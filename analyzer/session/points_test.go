// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/attune-hpc/attune/analyzer/core"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestIndexesAreUsedAgain asks for more points than there are indexes, as a
// long job does process by process.
func TestIndexesAreUsedAgain(t *testing.T) {
	ps := newPointSet()
	for want := uint32(1); want <= maxIndex; want++ {
		if got := ps.index(0); got != want {
			t.Fatalf("index %d, want %d", got, want)
		}
	}
	ps.retire(&point{index: 7}, 0)
	ps.retire(&point{index: 3}, time.Second)
	for _, tt := range []struct {
		at   time.Duration
		want uint32
	}{{reuseAfter - 1, 0}, {reuseAfter, 7}, {reuseAfter, 0}, {2 * reuseAfter, 3}, {3 * reuseAfter, 0}} {
		if got := ps.index(tt.at); got != tt.want {
			t.Errorf("at %v: index %d, want %d", tt.at, got, tt.want)
		}
	}
}

// What a reaction asks for beyond all bounds is not even looked at.
func TestRequestsOfOneReactionAreBounded(t *testing.T) {
	r := newRig(t, core.ModeTune)
	reaction := &attunev1.Reaction{}
	for i := range 2 * maxRequests {
		id := strconv.Itoa(i)
		reaction.AddPoints = append(reaction.AddPoints, hook(id, id))
	}
	a := newScripted(t, "a", nil)
	r.session.TunletReady(a)
	refused := make(chan int, 1)
	r.session.post(func() {
		s := r.session
		s.tunlets.react(s.tunlets.running["a"], reaction)
		refused <- s.tunlets.running["a"].refusals
	})
	if got := <-refused; got != maxRequests-maxPoints {
		t.Errorf("%d points refused, want %d", got, maxRequests-maxPoints)
	}
}

// The refusal of a point names the processes that it was for, by which the tunlet knows it.
func TestRefusalNamesTheProcess(t *testing.T) {
	r := newRig(t, core.ModeTune)
	r.connect("ac1", 7, 8)
	reaction := &attunev1.Reaction{}
	for i := range maxPoints {
		id := strconv.Itoa(i)
		reaction.AddPoints = append(reaction.AddPoints, hook(id, id))
	}
	one := hook("one", "malloc")
	one.Processes = []uint64{1, 2}
	reaction.AddPoints = append(reaction.AddPoints, one, hook("all", "malloc"))
	a := newScripted(t, "a", reaction)
	r.session.TunletReady(a)
	r.settle("a")
	r.settle("a")
	told := get(a, func() (told []string) {
		for _, p := range a.points {
			told = append(told, fmt.Sprintf("%s in %d: %s", p.GetPointId(), p.GetStatus().GetProcess(), p.GetStatus().GetReason()))
		}
		return told
	})
	const reason = "a may have 1024 measure points"
	if diff := cmp.Diff([]string{"one in 1: " + reason, "one in 2: " + reason, "all in 0: " + reason}, told); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// A point that is refused in many processes leaves room for the refusals of others.
func TestRefusalInManyProcesses(t *testing.T) {
	r := newRig(t, core.ModeTune)
	handles := make([]uint64, maxNews/2)
	for i := range handles {
		handles[i] = uint64(i + 1)
	}
	r.connect("ac1", handles...)
	reaction := &attunev1.Reaction{}
	for i := range maxPoints {
		id := strconv.Itoa(i)
		reaction.AddPoints = append(reaction.AddPoints, hook(id, id))
	}
	many := hook("many", "malloc")
	many.Processes = handles
	reaction.AddPoints = append(reaction.AddPoints, many, hook("one", "malloc"))
	a := newScripted(t, "a", reaction)
	r.session.TunletReady(a)
	r.settle("a")
	r.settle("a")
	told := get(a, func() (told int) {
		for _, p := range a.points {
			if p.GetPointId() == "one" {
				told++
			}
		}
		return told
	})
	if told != 1 {
		t.Errorf("told %d times that the second point is refused, want once", told)
	}
}

// A tunlet that asks for another measure point by an id that it has keeps the first one, and
// people are told; so they are of one without an id. To ask for the same again, or to remove
// the first one before, is right.
func TestPointsHaveIdsOfTheirOwn(t *testing.T) {
	r := newRig(t, core.ModeTune)
	l := r.connect("ac1", 7)
	r.session.TunletReady(newScripted(t, "a", nil))
	asked := func(removed []string, points ...*attunev1.MeasurePoint) []string {
		r.react("a", &attunev1.Reaction{RemovePoints: removed, AddPoints: points})
		r.tick()
		var hooks []string
		for _, p := range l.last().GetPoints() {
			hooks = append(hooks, p.GetPoint().GetHook())
		}
		return hooks
	}
	for _, step := range []struct {
		removed []string
		points  []*attunev1.MeasurePoint
		want    string // the hook that is measured
		remarks int
	}{
		{nil, []*attunev1.MeasurePoint{hook("p", "malloc")}, "malloc", 0},
		{nil, []*attunev1.MeasurePoint{hook("p", "malloc")}, "malloc", 0},
		{nil, []*attunev1.MeasurePoint{hook("p", "free")}, "malloc", 1},
		{[]string{"p"}, []*attunev1.MeasurePoint{hook("p", "free")}, "free", 1},
		{[]string{"p"}, []*attunev1.MeasurePoint{hook("p", "read"), hook("p", "write")}, "read", 2},
		{nil, []*attunev1.MeasurePoint{hook("", "write")}, "read", 3},
	} {
		if got := asked(step.removed, step.points...); !cmp.Equal(got, []string{step.want}) {
			t.Errorf("after %v without %q: measured is %q, want %q", step.points, step.removed, got, step.want)
		}
		told := r.report().Remarks
		if len(told) != step.remarks || len(told) > 0 && !strings.HasPrefix(told[0].Text, `measure point "p" is there already, for something else: `) {
			t.Errorf("after %v: remarks %+v, want %d", step.points, told, step.remarks)
		}
	}
}

// TestPointsEndWithTheirProcesses: a tunlet that does not give its points of ended processes back
// has room for others.
func TestPointsEndWithTheirProcesses(t *testing.T) {
	r := newRig(t, core.ModeTune)
	l := r.connect("ac1", 1, 2)
	r.session.TunletReady(newScripted(t, "a", nil))
	r.grow()
	both, one, all := hook("both", "malloc"), hook("one", "free"), hook("all", "read")
	both.Processes, one.Processes = []uint64{1, 2}, []uint64{1}
	r.react("a", &attunev1.Reaction{AddPoints: []*attunev1.MeasurePoint{both, one, all}})
	for _, step := range []struct {
		ends uint64
		want []uint32
	}{{1, []uint32{1, 3}}, {2, []uint32{3}}} {
		r.ends(step.ends, false)
		r.tick()
		if got := l.indexes(); !cmp.Equal(got, step.want) {
			t.Errorf("after the end of process %d: points %v, want %v", step.ends, got, step.want)
		}
	}
}

// TestEndedProcessStaysEnded has more become known about a process, a checksum
// for instance, after its end.
func TestEndedProcessStaysEnded(t *testing.T) {
	r := newRig(t, core.ModeTune)
	r.connect("ac1", 1)
	a := newScripted(t, "a", nil)
	r.session.TunletReady(a)
	r.session.Publish("ac1", &attunev1.PublishRequest{Event: &attunev1.PublishRequest_ProcessEnded{
		ProcessEnded: &attunev1.ProcessEnded{Process: 1},
	}})
	r.session.Publish("ac1", &attunev1.PublishRequest{Event: &attunev1.PublishRequest_ProcessChanged{
		ProcessChanged: &attunev1.Process{Handle: 1, Executable: "/bin/app", ExecutableSha256: "abc"},
	}})
	r.session.post(func() {
		r.session.decider.step(core.Propose{Tunlet: "a", Proposal: &attunev1.Proposal{Id: "p", Changes: []*attunev1.Change{{
			Knob: "k", Process: 1, Action: &attunev1.Action{Kind: &attunev1.Action_Setting{Setting: &attunev1.NamedSetting{Name: "k"}}},
		}}}})
	})
	rep := r.report()
	if len(rep.Refused) != 1 || rep.Refused[0].Reason != "process 1 is not known, or has ended" {
		t.Errorf("refused %+v", rep.Refused)
	}
	if len(rep.Processes) != 1 || rep.Processes[0].SHA256 != "abc" || rep.Processes[0].EndedSeconds == nil {
		t.Errorf("processes %+v", rep.Processes)
	}
}

func TestTimesOfOtherClocks(t *testing.T) {
	r := newRig(t, core.ModeTune)
	r.mu.Lock()
	r.now = r.now.Add(10 * time.Second)
	now := r.now
	r.mu.Unlock()
	tests := []struct {
		name  string
		nanos int64
		by    time.Duration
		want  time.Duration
	}{
		{"unknown", 0, time.Second, 0},
		{"a while ago", now.Add(-3 * time.Second).UnixNano(), 0, 7 * time.Second},
		{"before the session", now.Add(-time.Hour).UnixNano(), 0, 0},
		{"a clock that is ahead", now.Add(time.Hour).UnixNano(), 0, 10 * time.Second},
		{"a clock that is known to be ahead", now.Add(time.Hour).UnixNano(), -time.Hour - time.Second, 9 * time.Second},
		{"a clock that is known to be behind", now.Add(-4 * time.Second).UnixNano(), 3 * time.Second, 9 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := r.session.sinceUnix(tt.nanos, shift{by: tt.by}); got != tt.want {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}

// The word on a point may overtake the start of its process, which comes by
// another channel.
func TestStatusBeforeItsProcess(t *testing.T) {
	r := newRig(t, core.ModeTune)
	r.connect("ac1")
	a := newScripted(t, "a", &attunev1.Reaction{AddPoints: []*attunev1.MeasurePoint{hook("mine", "malloc")}})
	r.session.TunletReady(a)
	r.settle("a")
	r.session.Manage("ac1", &attunev1.ManageRequest{Message: &attunev1.ManageRequest_Point{Point: &attunev1.PointStatus{
		Point: 1, Process: 9, State: attunev1.PointState_POINT_STATE_PLACED, Mechanism: "hook",
	}}})
	r.settle("a")
	for _, handle := range []uint64{8, 9} {
		r.session.Publish("ac1", &attunev1.PublishRequest{Event: &attunev1.PublishRequest_ProcessStarted{
			ProcessStarted: &attunev1.Process{Handle: handle},
		}})
	}
	r.settle("a")
	placed := get(a, func() []uint64 {
		var out []uint64
		for _, p := range a.points {
			out = append(out, p.GetStatus().GetProcess())
		}
		return out
	})
	if diff := cmp.Diff([]uint64{2}, placed); diff != "" {
		t.Errorf("told of the point in processes: %s", diff)
	}
}

// What is told of a point in a process that has ended is not kept: nobody would forget it.
func TestStatusAfterTheEnd(t *testing.T) {
	r := newRig(t, core.ModeTune)
	r.connect("ac1", 7, 8)
	a := newScripted(t, "a", &attunev1.Reaction{AddPoints: []*attunev1.MeasurePoint{hook("mine", "malloc")}})
	r.session.TunletReady(a)
	r.settle("a")
	r.ends(7, false)
	for _, handle := range []uint64{7, 8} {
		r.session.Manage("ac1", &attunev1.ManageRequest{Message: &attunev1.ManageRequest_Point{Point: &attunev1.PointStatus{
			Point: 1, Process: handle, State: attunev1.PointState_POINT_STATE_REFUSED, Reason: fmt.Sprintf("maps of %d", handle),
		}}})
	}
	r.settle("a")
	if rep := r.report(); len(rep.Points) != 1 || rep.Points[0].Reason != "maps of 8" {
		t.Errorf("points %+v", rep.Points)
	}
}
