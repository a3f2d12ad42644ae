// SPDX-License-Identifier: Apache-2.0

package fold

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestLatestObjectives: values of many processes, one after the other, are shown as long as
// they are new.
func TestLatestObjectives(t *testing.T) {
	a := NewAccount()
	a.Take(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Tunlet{Tunlet: &attunev1.RecordedTunlet{
		Info: &attunev1.DescribeResponse{Name: "malloc"},
	}}})
	value := func(at time.Duration, scope string) {
		a.Take(&attunev1.RecordingFrame{AtNanos: int64(at), What: &attunev1.RecordingFrame_Reaction{Reaction: &attunev1.RecordedReaction{
			Tunlet: "malloc", Reaction: &attunev1.Reaction{Objectives: []*attunev1.ObjectiveSample{{Scope: scope, Value: 1}}},
		}}})
	}
	shown := func(at time.Duration) (scopes []string) {
		for _, o := range a.Snapshot(at).Objectives {
			scopes = append(scopes, o.Scope)
		}
		return scopes
	}
	var want []string
	for i := range maxScopes + 1 {
		scope := fmt.Sprintf("pid %02d", i)
		value(time.Duration(i+1)*time.Millisecond, scope)
		want = append(want, scope)
	}
	if diff := cmp.Diff(want[1:], shown(time.Second)); diff != "" {
		t.Errorf("the oldest makes room (-want +got):\n%s", diff)
	}
	value(shownFor, "pid 07")
	if diff := cmp.Diff([]string{"pid 07"}, shown(shownFor+time.Second)); diff != "" {
		t.Errorf("what is old (-want +got):\n%s", diff)
	}
}
