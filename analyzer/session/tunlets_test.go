// SPDX-License-Identifier: Apache-2.0

package session

import (
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
