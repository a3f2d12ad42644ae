// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attune-hpc/attune/dmlib/abi"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

func TestHooksFitTheLayout(t *testing.T) {
	for i, h := range Hooks() {
		if h.Index >= HookCount || h.Family&atAny == 0 {
			t.Errorf("hook %+v is outside the layout", h)
		}
		if i > 0 && Hooks()[i-1].Index >= h.Index {
			t.Errorf("the index of hook %+v does not rise", h)
		}
		if got, ok := HookByName(h.Name); !ok || got != h {
			t.Errorf("hook %s is found as %+v", h.Name, got)
		}
	}
	if _, ok := HookByName("no_such_function"); ok {
		t.Error("found a hook that is not there")
	}
}

// TestRecordsTravelAsTheyLie compares the protocol's reading of a record with that of
// the headers.
func TestRecordsTravelAsTheyLie(t *testing.T) {
	r := attunev1.Record{Monotonic: 1, Point: 2, Flags: 3, Thread: 4, Value: 5, Extra: 6}
	packed := attunev1.AppendRecord(nil, r, attunev1.Captured{Kind: 1, Bits: 7}, attunev1.Captured{Kind: 1, Bits: 8}, attunev1.Captured{Kind: 1, Bits: 9})
	want := make([]byte, 2*attunev1.RecordSize)
	unit := want[attunev1.RecordSize:]
	for _, at := range []struct {
		bytes []byte
		value byte
	}{
		{want[abi.RecordTimeAt:], 1}, {want[abi.RecordPointAt:], 2}, {want[abi.RecordFlagsAt:], 3}, {want[abi.RecordFlagsAt+1:], 1},
		{want[abi.RecordThreadAt:], 4}, {want[abi.RecordValueAt:], 5}, {want[abi.RecordExtraAt:], 6},
		{unit[abi.ContinuationFirstAt:], 7}, {unit[abi.RecordFlagsAt:], attunev1.RecordContinuation}, {unit[abi.ContinuationKindsAt:], 0x11},
		{unit[abi.ContinuationKindsAt+1:], 1}, {unit[abi.ContinuationSecondAt:], 8}, {unit[abi.ContinuationThirdAt:], 9},
	} {
		at.bytes[0] = at.value
	}
	if diff := cmp.Diff(want, packed); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(
		[]int{abi.RecordBytes, abi.ContinuationBytes, abi.RecordDuration, abi.RecordSampled, abi.RecordContinuation, abi.RecordFollowShift},
		[]int{attunev1.RecordSize, attunev1.RecordSize, attunev1.RecordDuration, attunev1.RecordSampled, attunev1.RecordContinuation, attunev1.RecordFollow},
	); diff != "" {
		t.Errorf("headers (-) and protocol (+):\n%s", diff)
	}
}
