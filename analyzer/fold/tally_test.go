// SPDX-License-Identifier: Apache-2.0

package fold

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attune-hpc/attune/analyzer/report"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// packed packs a hit of point 3 with two captures: an integer and a real number.
func packed(kind attunev1.CapturedKind, first uint64, second float64) []byte {
	return attunev1.AppendRecord(nil, attunev1.Record{Point: 3, Thread: 9},
		attunev1.Captured{Kind: kind, Bits: first}, attunev1.Captured{Kind: attunev1.CapturedReal, Bits: math.Float64bits(second)})
}

// What single hits captured comes into the report, with the points of the owner.
func TestCapturesAreReported(t *testing.T) {
	const text = "a:f take n=arg0:i32, x=arg1:f64"
	a := NewAccount()
	a.Take(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Point{Point: &attunev1.AddPoint{Point: 3, Spec: &attunev1.MeasurePoint{Id: text}}}})
	for _, asker := range []string{"other", report.OwnerName} {
		a.Take(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Asked{Asked: &attunev1.RecordedAsk{Point: 3, Asker: asker, Id: text}}})
	}
	for process, state := range []attunev1.PointState{attunev1.PointState_POINT_STATE_PLACED, attunev1.PointState_POINT_STATE_REFUSED} {
		a.Take(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_PointStatus{
			PointStatus: &attunev1.PointStatus{Point: 3, Process: uint64(process + 1), State: state},
		}})
	}
	var data []byte
	minus := int64(-2)
	data = append(data, packed(attunev1.CapturedSigned, uint64(minus), 0.5)...)
	data = append(data, packed(attunev1.CapturedSigned, 7, math.NaN())...)
	data = append(data, packed(attunev1.CapturedSigned, 7, 1.5)...)
	data = append(data, packed(attunev1.CapturedUnreadable, 0, 1.5)...)
	for i := range uint64(maxValues) {
		data = append(data, packed(attunev1.CapturedSigned, 100+i, 1.5)...)
	}
	a.Take(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Records{Records: &attunev1.NamedRecords{Process: 1, Records: data}}})
	points := a.Report(0).Points
	if len(points) != 4 || points[0].Captures != nil || points[3].Captures != nil || len(points[2].Captures) != 2 {
		t.Fatalf("%+v", points)
	}
	n, x := points[2].Captures[0], points[2].Captures[1]
	if n.Hits != 4+maxValues || n.Unreadable != 1 || n.Value.Count != 3+maxValues || n.Value.Least.String() != "-2" || n.Others != 2 || len(n.Most) != maxValues {
		t.Errorf("%+v", n)
	}
	if diff := cmp.Diff("7", n.Most[0].Value.String()); diff != "" || n.Most[0].Hits != 2 {
		t.Errorf("most often: %+v", n.Most[0])
	}
	if x.Value.Count != 3+maxValues || x.Value.Least.String() != "0.5" || x.Value.Greatest.String() != "1.5" || x.Most[0].Hits != 2+maxValues {
		t.Errorf("%+v", x)
	}
}
