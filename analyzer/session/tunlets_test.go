// SPDX-License-Identifier: Apache-2.0

package session

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/attune-hpc/attune/analyzer/core"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestRestAfter: what keeps the loop busy for long has a quarter of it at most.
func TestRestAfter(t *testing.T) {
	for busy, want := range map[time.Duration]time.Duration{
		longReaction - 1:       0,
		100 * time.Millisecond: 300 * time.Millisecond,
	} {
		if got := restAfter(busy); got != want {
			t.Errorf("busy for %v: a rest of %v, want %v", busy, got, want)
		}
	}
}

// TestManyRemarks: a tunlet makes too many remarks, and that is said in place of the rest.
func TestManyRemarks(t *testing.T) {
	r := newRig(t, core.ModeTune)
	r.session.TunletReady(newScripted(t, "a", nil))
	for range tunletRemarks + 5 {
		r.react("a", &attunev1.Reaction{Remarks: []*attunev1.Remark{{Text: "once more"}}})
	}
	told := r.report().Remarks
	const want = "tunlet a has made 50 remarks; further ones are not told before it is started again"
	if n := len(told); n != tunletRemarks+1 || told[n-1].Text != want {
		t.Errorf("%d remarks, the last %+v, want %q", n, told[n-1], want)
	}
}

// TestObjectivesThatAreLeftOut: a tunlet that is not made with the SDK for Go can answer with
// values that nothing is judged by. One remark says so.
func TestObjectivesThatAreLeftOut(t *testing.T) {
	r := newRig(t, core.ModeTune)
	r.session.TunletReady(newScripted(t, "a", nil))
	for _, value := range []float64{-1, 7, math.NaN(), -1} {
		r.react("a", &attunev1.Reaction{Objectives: []*attunev1.ObjectiveSample{{Scope: "app", Value: value}}})
	}
	told := r.report().Remarks
	if len(told) != 1 || told[0].From != "a" || !strings.HasPrefix(told[0].Text, `the objective in scope "app": values that are below 0`) {
		t.Errorf("remarks %+v, want one of them", told)
	}
}
