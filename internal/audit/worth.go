// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"google.golang.org/protobuf/proto"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// worth says whether a message of a stream asks for something that touches a
// process, or answers that. The first one is noted in any case: it says whom a
// stream is for.
func worth(m any) bool {
	switch m := m.(type) {
	case *attunev1.ManageRequest:
		return m.GetResult() != nil
	case *attunev1.ManageResponse:
		return m.GetApply() != nil || m.GetUndo() != nil || len(m.GetWant().GetPoints()) > 0
	}
	return false
}

// points are those that were wanted last on a stream, by index.
type points map[uint32]*attunev1.PointWant

// changed returns a message as it is to be noted: of a want, which is whole each time,
// the points that come, and without anything but their index those that go.
func (ps *points) changed(m any) any {
	request, _ := m.(*attunev1.ManageResponse)
	if request.GetWant() == nil {
		return m
	}
	changed, now := &attunev1.Want{}, points{}
	for _, p := range request.GetWant().GetPoints() {
		now[p.GetIndex()] = p
		if !proto.Equal((*ps)[p.GetIndex()], p) {
			changed.Points = append(changed.Points, p)
		}
	}
	for index := range *ps {
		if now[index] == nil {
			changed.Points = append(changed.Points, &attunev1.PointWant{Index: index})
		}
	}
	*ps = now
	return &attunev1.ManageResponse{RequestId: request.GetRequestId(), Request: &attunev1.ManageResponse_Want{Want: changed}}
}
