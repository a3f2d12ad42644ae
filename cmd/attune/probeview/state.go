// SPDX-License-Identifier: Apache-2.0

package probeview

import (
	"cmp"
	"fmt"
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// State is what became of a point, in a word; "degraded" where the overhead
// budget leaves less than what was asked for.
func State(st *attunev1.PointStatus) string {
	switch st.GetState() {
	case attunev1.PointState_POINT_STATE_PLACED:
		if st.GetDegradedTo() != attunev1.Delivery_DELIVERY_UNSPECIFIED {
			return "degraded"
		}
		return "placed"
	case attunev1.PointState_POINT_STATE_REFUSED:
		return "refused"
	case attunev1.PointState_POINT_STATE_REMOVED:
		return "removed"
	case attunev1.PointState_POINT_STATE_OFF:
		return "off"
	}
	return "waiting"
}

// StateText is what became of a point, in a sentence.
func StateText(st *attunev1.PointStatus) string {
	text := State(st)
	if text == "waiting" {
		return "waiting: the process has not come to a safe point yet"
	}
	switch {
	case text == "degraded":
		text += " to " + delivery(st)
	case text == "placed" && st.GetMechanism() != "":
		text += fmt.Sprintf(" by %s, %s a hit", st.GetMechanism(), Cost(st))
	}
	if n := len(st.GetSymbols()); n > 1 {
		text += fmt.Sprintf(", in %d functions", n)
	}
	if why := cmp.Or(st.GetDegradedReason(), st.GetReason()); why != "" {
		text += ": " + why
	}
	return text
}

// delivery is what the budget leaves.
func delivery(st *attunev1.PointStatus) string {
	if st.GetDegradedTo() == attunev1.Delivery_DELIVERY_SAMPLED {
		return fmt.Sprintf("one hit in %d", st.GetDegradedEvery())
	}
	return "counts"
}

// Cost of a hit for people.
func Cost(st *attunev1.PointStatus) string {
	nanos := st.GetCostNanos()
	if nanos < 100 {
		return fmt.Sprintf("%.3g ns", nanos)
	}
	return time.Duration(nanos).Round(10 * time.Nanosecond).String()
}
