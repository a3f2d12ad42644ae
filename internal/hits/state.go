// SPDX-License-Identifier: Apache-2.0

package hits

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/attune-hpc/attune/internal/symname"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// StateName is a state in a word; empty if nothing was answered yet.
func StateName(st attunev1.PointState) string {
	if st == attunev1.PointState_POINT_STATE_UNSPECIFIED {
		return ""
	}
	return strings.ToLower(strings.TrimPrefix(st.String(), "POINT_STATE_"))
}

// Degraded says whether the overhead budget leaves less of a point than what was
// asked for.
func Degraded(st *attunev1.PointStatus) bool {
	return st.GetState() == attunev1.PointState_POINT_STATE_PLACED && st.GetDegradedTo() != attunev1.Delivery_DELIVERY_UNSPECIFIED
}

// State is what became of a point, in a word; "degraded" where the overhead
// budget leaves less than what was asked for.
func State(st *attunev1.PointStatus) string {
	if Degraded(st) {
		return "degraded"
	}
	return cmp.Or(StateName(st.GetState()), "waiting")
}

// LeastLate is the least time without a point, after it was asked for, that
// people are told of; the documents have each.
const LeastLate = 100 * time.Millisecond

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
		text += fmt.Sprintf(" by %s, %s a hit", st.GetMechanism(), Cost(st.GetCostNanos(), st.GetCostMeasured()))
	}
	if late := time.Duration(st.GetLateNanos()); late >= LeastLate {
		text += fmt.Sprintf(", in place %v late", late.Round(10*time.Millisecond))
	}
	if names := st.GetSymbols(); len(names) > 1 {
		text += ", in " + Functions(names)
	}
	if why := cmp.Or(st.GetDegradedReason(), st.GetReason()); why != "" {
		text += ": " + why
	}
	return text
}

// Target is a point's text without what is taken there.
func Target(text string) string {
	words := strings.Fields(text)
	for i, word := range words {
		if i > 0 && slices.Contains([]string{"take", "if", "every", "each", "by", "sum"}, word) {
			return strings.Join(words[:i], " ")
		}
	}
	return text
}

// Unseen says why a point of this target may not have been hit though its function was
// called; empty: there is no reason to think so.
func Unseen(mechanism, target string) string {
	if mechanism != "got" {
		return ""
	}
	object, _, named := strings.Cut(target, ":")
	if !named {
		object = "the library"
	}
	return fmt.Sprintf("calls within %s and through pointers do not pass its GOT slots; %s%%return sees these as well", object, target)
}

// Functions lists functions as their source code has them, the first ones if
// there are many.
func Functions(symbols []string) string {
	const most = 5
	names := make([]string, 0, most)
	for _, s := range symbols[:min(most, len(symbols))] {
		names = append(names, symname.Demangle(s))
	}
	text := strings.Join(names, ", ")
	if more := len(symbols) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
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

// Cost of a hit for people; "about" where it was not measured on this machine.
func Cost(nanos float64, measured bool) string {
	text := fmt.Sprintf("%.3g ns", nanos)
	if nanos >= 100 {
		text = time.Duration(nanos).Round(10 * time.Nanosecond).String()
	}
	if !measured {
		text = "about " + text
	}
	return text
}
