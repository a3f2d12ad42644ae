// SPDX-License-Identifier: Apache-2.0

package probes

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attune-hpc/attune/analyzer/fold"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// watched has two wishes in process 7, which share point 3, and one in process 8.
type watched struct {
	account *fold.Account
	wishes  *wishes
	heard   []string
}

func (w *watched) take(frames ...*attunev1.RecordingFrame) {
	for _, f := range frames {
		w.account.Take(f)
		w.wishes.Take(f)
	}
}

func (w *watched) hear(e *attunev1.WatchProbesResponse) {
	switch k := e.GetEvent().(type) {
	case *attunev1.WatchProbesResponse_Probe:
		w.heard = append(w.heard, fmt.Sprintf("%%%d in %d is %s", k.Probe.GetNumber(), k.Probe.GetPid(), k.Probe.GetStatus().GetState()))
	case *attunev1.WatchProbesResponse_Hits:
		for _, a := range k.Hits.GetAggregates() {
			w.heard = append(w.heard, fmt.Sprintf("%d hits of %%%s", a.GetAggregate().GetCount(), a.GetPointId()))
		}
		for _, n := range k.Hits.GetRecords() {
			w.heard = append(w.heard, fmt.Sprintf("%d records, %d lost", attunev1.CountRecords(n.GetRecords()), n.GetLost()))
		}
	case *attunev1.WatchProbesResponse_Ended:
		w.heard = append(w.heard, fmt.Sprintf("%d has ended", k.Ended))
	}
}

func asked(a *attunev1.RecordedAsk) *attunev1.RecordingFrame {
	a.Asker = "watch"
	return &attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Asked{Asked: a}}
}

func newWatched() *watched {
	w := &watched{account: fold.NewAccount()}
	w.wishes = &wishes{account: w.account, name: "watch", hear: w.hear}
	for handle := uint64(1); handle <= 2; handle++ {
		w.take(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Process{Process: &attunev1.RecordedProcess{
			Process: &attunev1.Process{Handle: handle, Identity: &attunev1.ProcessIdentity{Pid: int32(6 + handle)}},
		}}}, &attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Point{
			Point: &attunev1.AddPoint{Point: uint32(2 + handle), Spec: &attunev1.MeasurePoint{Delivery: attunev1.Delivery_DELIVERY_EVENT}},
		}})
	}
	w.take(asked(&attunev1.RecordedAsk{Point: 3, Id: "a:f", Process: 1, Number: 1}), asked(&attunev1.RecordedAsk{Point: 3, Id: "a:f sum arg0", Process: 1, Number: 4}),
		asked(&attunev1.RecordedAsk{Point: 4, Id: "a:f", Process: 2, Number: 5}))
	return w
}

func TestWatchHears(t *testing.T) {
	placed := &attunev1.RecordingFrame{What: &attunev1.RecordingFrame_PointStatus{
		PointStatus: &attunev1.PointStatus{Point: 3, Process: 1, State: attunev1.PointState_POINT_STATE_PLACED},
	}}
	records := func(process, lost uint64, points ...uint16) *attunev1.RecordingFrame {
		n := &attunev1.NamedRecords{Process: process, Lost: lost}
		for _, p := range points {
			n.Records = attunev1.AppendRecord(n.Records, attunev1.Record{Point: p})
		}
		return &attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Records{Records: n}}
	}
	over := func(process uint64, number uint32) *attunev1.RecordingFrame {
		return asked(&attunev1.RecordedAsk{Point: 3, Process: process, Number: number, Over: true})
	}
	for _, tt := range []struct {
		name   string
		frames []*attunev1.RecordingFrame
		want   []string
		left   int64
	}{
		{"two points that are alike have numbers of their own", []*attunev1.RecordingFrame{{What: &attunev1.RecordingFrame_Aggregates{
			Aggregates: &attunev1.AggregateBatch{Aggregates: []*attunev1.Aggregate{{Point: 3, Process: 1, Count: 2}, {Point: 4, Process: 1, Count: 9}}},
		}}}, []string{"2 hits of %1", "2 hits of %4"}, 3},
		{"records of its points, and losses", []*attunev1.RecordingFrame{records(1, 0, 3, 9, 3), records(1, 5), records(3, 5, 3)}, []string{"2 records, 0 lost", "0 records, 5 lost"}, 3},
		{"the end, with the last wish", []*attunev1.RecordingFrame{placed, over(1, 1), over(1, 4)},
			[]string{"%1 in 7 is POINT_STATE_PLACED", "%4 in 7 is POINT_STATE_PLACED", "7 has ended"}, 1},
		{"the end of what nobody has heard of", []*attunev1.RecordingFrame{over(2, 5)}, nil, 2},
		{"another image, and the end of the old one", []*attunev1.RecordingFrame{asked(&attunev1.RecordedAsk{Point: 4, Process: 2, Number: 1}), over(1, 1)}, nil, 3},
		{"a point that is known already", []*attunev1.RecordingFrame{placed, asked(&attunev1.RecordedAsk{Point: 3, Id: "b", Process: 1, Number: 9})},
			[]string{"%1 in 7 is POINT_STATE_PLACED", "%4 in 7 is POINT_STATE_PLACED", "%9 in 7 is POINT_STATE_PLACED"}, 4},
		{"one that is refused", []*attunev1.RecordingFrame{asked(&attunev1.RecordedAsk{Id: "b", Process: 1, Number: 9, Refused: "no"})},
			[]string{"%9 in 7 is POINT_STATE_REFUSED"}, 4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWatched()
			w.take(tt.frames...)
			if diff := cmp.Diff(tt.want, w.heard); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if left := w.wishes.left.Load(); left != tt.left {
				t.Errorf("%d wishes are left, want %d", left, tt.left)
			}
		})
	}
}
