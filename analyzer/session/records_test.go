// SPDX-License-Identifier: Apache-2.0

package session

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attune-hpc/attune/analyzer/core"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

// recorder is a tunlet of the SDK that hears records, and nothing of its points.
type recorder struct{ heard []string }

func (*recorder) Describe() sdk.Description { return sdk.Description{Name: "a"} }

func (*recorder) ApplicationStarted(h *sdk.Host, _ sdk.Application) {
	for _, name := range []string{"malloc", "free", "read"} {
		h.AddPoint(sdk.Point{ID: name + "s", Hook: name, Delivery: sdk.DeliverEvents})
	}
}

func (r *recorder) HandleRecords(_ *sdk.Host, records sdk.Records) {
	for record := range records.All() {
		r.heard = append(r.heard, record.Point)
	}
}

// A tunlet that does not hear of its points gets records with the names of all of them, and
// people are told of one that was refused after others were placed.
func TestNamesOfPointsInRecords(t *testing.T) {
	r := newRig(t, core.ModeTune)
	r.connect("ac1", 7)
	tunlet := &recorder{}
	r.session.TunletReady(&scripted{name: "a", service: dial(t, "a", sdk.NewServer(func() sdk.Tunlet { return tunlet }, sdk.ServerOptions{}))})
	r.settle("a")
	for i, state := range []attunev1.PointState{
		attunev1.PointState_POINT_STATE_PLACED, attunev1.PointState_POINT_STATE_PLACED, attunev1.PointState_POINT_STATE_REFUSED,
	} {
		r.session.Manage("ac1", &attunev1.ManageRequest{Message: &attunev1.ManageRequest_Point{Point: &attunev1.PointStatus{
			Point: uint32(i + 1), Process: 7, State: state, Reason: "no room",
		}}})
	}
	r.settle("a")
	r.records("ac1", 7, 1, 2)
	r.settle("a")
	if diff := cmp.Diff([]string{"mallocs", "frees"}, tunlet.heard); diff != "" {
		t.Errorf("points of records (-want +got)\n%s", diff)
	}
	told := r.report().Remarks
	if len(told) != 1 || told[0].Text != `measure point "reads" cannot be placed: no room` {
		t.Errorf("remarks %+v, want one of the point", told)
	}
}
