// SPDX-License-Identifier: Apache-2.0

package session

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/attune-hpc/attune/analyzer/core"
	"github.com/attune-hpc/attune/internal/testing/patience"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// hooks are points of hooks, each called as its hook is.
func hooks(names ...string) *attunev1.Reaction {
	r := &attunev1.Reaction{}
	for _, name := range names {
		r.AddPoints = append(r.AddPoints, hook(name, name))
	}
	return r
}

// A controller that was away is told once, and all at once, what is wanted of it by
// now: what was asked for before, and while it was away.
func TestWholeWantAfterReconnect(t *testing.T) {
	r := newRigWith(t, Config{Core: core.Config{Mode: core.ModeTune}, callTimeout: patience.Limit, Grace: patience.Limit})
	r.session.TunletReady(newScripted(t, "a", nil))
	before := r.connect("ac1", 70, 80)
	r.grow()
	inOne := hook("one", "free")
	inOne.Processes = []uint64{2}
	r.react("a", &attunev1.Reaction{
		AddPoints: append(hooks("stays", "goes").GetAddPoints(), inOne),
		Wants:     []*attunev1.TableWant{{Process: 1, Tables: []uint32{threadKind}}},
	})
	r.tick()
	if got := before.indexes(); !cmp.Equal(got, []uint32{1, 2, 3}) {
		t.Fatalf("at first: points %v", got)
	}
	r.session.ControllerGone("ac1", before, false)
	r.react("a", &attunev1.Reaction{RemovePoints: []string{"goes"}, AddPoints: hooks("new").GetAddPoints()})
	r.ask("watcher", nil, &attunev1.Want{Tables: []*attunev1.TableWant{{Process: 2, Tables: []uint32{socketKind}}}})
	r.tick()

	after := &link{}
	r.session.ControllerConnected(&attunev1.ControllerHello{ControllerId: "ac1"}, after)
	r.session.EventsConnected(&attunev1.StreamHello{ControllerId: "ac1", Processes: []uint64{70, 80}})
	for range 5 {
		r.tick()
	}
	there := proto.CloneOf(inOne)
	there.Processes = []uint64{80}
	want := []*attunev1.Want{{
		Points: []*attunev1.PointWant{
			{Index: 1, Point: hook("stays", "stays")}, {Index: 3, Point: there}, {Index: 4, Point: hook("new", "new")},
		},
		PeriodNanos: int64(r.session.tickEvery),
		Tables:      []*attunev1.TableWant{{Process: 70, Tables: []uint32{threadKind}}, {Process: 80, Tables: []uint32{socketKind}}},
	}}
	if diff := cmp.Diff(want, after.wanted(), protocmp.Transform()); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	if told := len(before.wanted()); told > 3 {
		t.Errorf("told %d times before", told)
	}
}

// Many points come and go: a controller is told of all together, and not for each.
func TestWantsAreBatched(t *testing.T) {
	r := newRig(t, core.ModeTune)
	r.session.TunletReady(newScripted(t, "a", nil))
	l := r.connect("ac1", 1)
	r.tick()
	before := len(l.wanted())
	reaction := hooks()
	for i := range maxPoints {
		reaction.AddPoints = append(reaction.AddPoints, hook(strconv.Itoa(i), strconv.Itoa(i)))
	}
	r.react("a", reaction)
	r.tick()
	if told := len(l.wanted()) - before; told != 1 || len(l.indexes()) != maxPoints {
		t.Fatalf("told %d times of %d points", told, len(l.indexes()))
	}
	for i := range maxPoints {
		r.react("a", &attunev1.Reaction{RemovePoints: []string{strconv.Itoa(i)}})
	}
	for range 3 {
		r.tick()
	}
	if told := len(l.wanted()) - before; told > maxPoints/50 || len(l.indexes()) != 0 {
		t.Errorf("told %d times when they went; %d points are left", told, len(l.indexes()))
	}
}

// What is large uses up what may be told in a second, and more.
func TestLargeWantsAreRare(t *testing.T) {
	r := newRig(t, core.ModeTune)
	r.session.TunletReady(newScripted(t, "a", nil))
	l := r.connect("ac1", 1)
	r.tick()
	large := hook("large", strings.Repeat("x", wantRate))
	r.react("a", &attunev1.Reaction{AddPoints: []*attunev1.MeasurePoint{large}})
	r.report()
	before := len(l.wanted())
	for i := range 40 {
		r.react("a", hooks(strconv.Itoa(i)))
		r.tick()
	}
	if told := len(l.wanted()) - before; told != 1 && told != 2 {
		t.Errorf("told %d times in %v", told, 40*r.session.tickEvery)
	}
	r.pass(2 * time.Second)
	if got := len(l.indexes()); got != 41 {
		t.Errorf("%d points in the end", got)
	}
}

// Points that together are more than a message has room for are refused.
func TestWantIsBounded(t *testing.T) {
	r := newRig(t, core.ModeTune)
	a := newScripted(t, "a", nil)
	r.session.TunletReady(a)
	l := r.connect("ac1", 1)
	r.react("a", hooks(strings.Repeat("x", maxPointBytes/4), strings.Repeat("y", maxPointBytes/4), "small"))
	r.react("a", hooks(strings.Repeat("x", maxPointBytes/4)))
	r.settle("a")
	r.pass(5 * time.Second)
	if size := proto.Size(l.last()); size > attunev1.MaxMessage/2 {
		t.Errorf("a want has %d bytes", size)
	}
	refused := get(a, func() (reasons []string) {
		for _, p := range a.points {
			reasons = append(reasons, p.GetStatus().GetReason())
		}
		return reasons
	})
	want := []string{"the measure points of a session may take 8 MiB: remove some first, or ask for fewer"}
	if diff := cmp.Diff(want, refused); diff != "" {
		t.Error(diff)
	}
	r.react("a", &attunev1.Reaction{RemovePoints: []string{strings.Repeat("x", maxPointBytes/4)}, AddPoints: hooks(strings.Repeat("z", maxPointBytes/4)).GetAddPoints()})
	r.settle("a")
	if n := get(a, func() int { return len(a.points) }); n != 1 {
		t.Errorf("refused %d times, the second although there is room", n)
	}
}
