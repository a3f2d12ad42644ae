// SPDX-License-Identifier: Apache-2.0

package change

import (
	"fmt"
	"math"
	"slices"

	"google.golang.org/protobuf/proto"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// difference is what has to be done to go from one want to the next.
type difference struct {
	next    *attunev1.Want          // what is in force then
	gone    []uint16                // points to take out
	come    []*attunev1.PointWant   // points to place
	kept    []uint16                // points that stay as they are
	refused []*attunev1.PointStatus // points that cannot be
	period  bool                    // it is another
	tables  bool                    // they are others
	owned   bool                    // the objective is another
}

// compare returns what has to be done to go from the want in force, whose points were
// all placed once, to another one. A point stays if its index and its spec do.
func compare(inForce, wanted *attunev1.Want) difference {
	before := make(map[uint32]*attunev1.MeasurePoint, len(inForce.GetPoints()))
	for _, p := range inForce.GetPoints() {
		before[p.GetIndex()] = p.GetPoint()
	}
	d := difference{
		next:   &attunev1.Want{PeriodNanos: max(wanted.GetPeriodNanos(), 0), Tables: wanted.GetTables(), Objective: wanted.GetObjective()},
		tables: !slices.EqualFunc(inForce.GetTables(), wanted.GetTables(), func(a, b *attunev1.TableWant) bool { return proto.Equal(a, b) }),
	}
	d.owned = d.next.Objective != inForce.GetObjective()
	d.period = d.next.PeriodNanos != inForce.GetPeriodNanos()
	after := make(map[uint32]bool, len(wanted.GetPoints()))
	for _, p := range wanted.GetPoints() {
		if why := whyNoPoint(p.GetIndex(), after); why != "" {
			d.refused = append(d.refused, &attunev1.PointStatus{
				Point: p.GetIndex(), State: attunev1.PointState_POINT_STATE_REFUSED, Reason: why,
			})
			continue
		}
		after[p.GetIndex()] = true
		d.next.Points = append(d.next.Points, p)
		if old, known := before[p.GetIndex()]; known && proto.Equal(old, p.GetPoint()) {
			d.kept = append(d.kept, uint16(p.GetIndex()))
			delete(before, p.GetIndex())
		} else {
			d.come = append(d.come, p)
		}
	}
	for _, p := range inForce.GetPoints() {
		if _, left := before[p.GetIndex()]; left {
			d.gone = append(d.gone, uint16(p.GetIndex()))
		}
	}
	return d
}

// whyNoPoint is why no point can have an index beside others; empty: one can.
func whyNoPoint(index uint32, others map[uint32]bool) string {
	switch {
	case index == 0 || index > math.MaxUint16:
		return fmt.Sprintf("point index %d is outside 1..%d", index, math.MaxUint16)
	case others[index]:
		return fmt.Sprintf("two measure points have the index %d", index)
	}
	return ""
}
