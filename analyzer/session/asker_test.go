// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attune-hpc/attune/analyzer/core"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// heard is a sink that keeps what it hears of wishes, in short.
type heard struct{ texts []string }

func (h *heard) Take(f *attunev1.RecordingFrame) {
	if a := f.GetAsked(); a != nil {
		text := fmt.Sprintf("%%%d %s in %d", a.GetNumber(), a.GetId(), a.GetProcess())
		switch {
		case a.GetOver():
			text += " is over"
		case a.GetRefused() != "":
			text += " is refused: " + a.GetRefused()
		}
		h.texts = append(h.texts, text)
	}
}

// starts tells of a process, which is old enough at once.
func (r *rig) starts(handle uint64, pid, parent int32) {
	r.session.Publish("ac1", &attunev1.PublishRequest{Event: &attunev1.PublishRequest_ProcessStarted{ProcessStarted: &attunev1.Process{
		Handle: handle, Identity: &attunev1.ProcessIdentity{Pid: pid}, ParentPid: parent,
	}}})
	r.grow()
}

func (r *rig) ends(handle uint64, replaced bool) {
	r.session.Publish("ac1", &attunev1.PublishRequest{Event: &attunev1.PublishRequest_ProcessEnded{
		ProcessEnded: &attunev1.ProcessEnded{Process: handle, ReplacedByExec: replaced},
	}})
	r.report()
}

func wantIn(id string, follow bool, processes ...uint64) *attunev1.PointWant {
	point := hook(id, id)
	point.Processes = processes
	return &attunev1.PointWant{Point: point, Follow: follow}
}

// What is wanted of a process goes on in the image that takes its place under its
// number, and if it follows in the children, once, and in theirs.
func TestWantsFollow(t *testing.T) {
	r := newRig(t, core.ModeTune)
	r.connect("ac1")
	r.starts(1, 7, 1)
	sink := &heard{}
	r.ask("people", sink, &attunev1.Want{Points: []*attunev1.PointWant{wantIn("f", true, 1), wantIn("g", false, 1)}})
	for _, step := range []struct {
		name string
		do   func()
		want []string
	}{
		{"as asked", func() {}, []string{"%1 f in 1", "%2 g in 1"}},
		{"a stranger", func() { r.starts(2, 8, 1) }, nil},
		{"a child", func() { r.starts(3, 9, 7) }, []string{"%3 f in 3"}},
		{"a child of the child", func() { r.starts(4, 10, 9) }, []string{"%4 f in 4"}},
		{"another program in the child", func() { r.ends(3, true); r.starts(5, 9, 7) }, []string{"%3 f in 5", "%3 f in 3 is over"}},
		{"one that nobody hears of, and its end", func() {
			r.ends(5, true)
			r.session.Publish("ac1", &attunev1.PublishRequest{Event: &attunev1.PublishRequest_ProcessStarted{ProcessStarted: &attunev1.Process{
				Handle: 6, Identity: &attunev1.ProcessIdentity{Pid: 9},
			}}})
			r.ends(6, false)
		}, []string{"%3 f in 5 is over"}},
		{"another process of that id", func() { r.starts(11, 9, 1) }, nil},
		{"all that is wanted is f in the grandchild", func() {
			r.ask("people", sink, &attunev1.Want{Points: []*attunev1.PointWant{wantIn("f", false, 4)}})
			slices.Sort(sink.texts)
		}, []string{"%1 f in 1 is over", "%2 g in 1 is over"}},
		{"its end", func() { r.ends(4, false) }, []string{"%4 f in 4 is over"}},
	} {
		sink.texts = slices.DeleteFunc(sink.texts, func(string) bool { return step.name != "as asked" })
		step.do()
		if diff := cmp.Diff(step.want, sink.texts, cmp.Transformer("", func(s []string) []string { return append([]string{}, s...) })); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
	if n := len(r.session.points.byIndex); n != 0 {
		t.Errorf("%d points are left", n)
	}
}

// TestRefusedWishesEnd: one that was refused is over when its process ends, or when it is not
// wanted any more, as any other.
func TestRefusedWishesEnd(t *testing.T) {
	r := newRig(t, core.ModeTune)
	r.connect("ac1")
	r.starts(1, 7, 1)
	r.starts(2, 8, 1)
	beyond := func() *attunev1.PointWant {
		return &attunev1.PointWant{Point: &attunev1.MeasurePoint{Id: "f", Processes: []uint64{1, 2}}}
	}
	sink := &heard{}
	r.ask("people", sink, &attunev1.Want{Points: []*attunev1.PointWant{beyond()}})
	sink.texts = nil
	r.ends(1, false)
	if !slices.Contains(sink.texts, "%1 f in 1 is over") || slices.Contains(sink.texts, "%2 f in 2 is over") {
		t.Errorf("at the end of a process: %q", sink.texts)
	}
	sink.texts = nil
	r.ask("people", sink, &attunev1.Want{})
	if want := []string{"%2 f in 2 is over"}; !slices.Equal(sink.texts, want) {
		t.Errorf("where nothing is wanted any more: %q, want %q", sink.texts, want)
	}
}

func TestAskFails(t *testing.T) {
	r := newRig(t, core.ModeTune)
	sink := &heard{}
	r.ask("people", sink, &attunev1.Want{Points: []*attunev1.PointWant{{Point: &attunev1.MeasurePoint{Id: "f"}}}})
	if diff := cmp.Diff([]string{"%1 f in 0 is refused: the measure point has no target"}, sink.texts); diff != "" {
		t.Error(diff)
	}
	never := errors.New("no")
	if err := r.session.Ask(t.Context(), "people", sink, func() (*attunev1.Want, error) { return nil, never }); !errors.Is(err, never) {
		t.Errorf("a want that cannot be made: %v", err)
	}
	r.session.Close()
	r.wg.Wait()
	if err := r.session.Ask(t.Context(), "people", sink, nil); !errors.Is(err, ErrEnded) {
		t.Errorf("after the end: %v", err)
	}
}
