// SPDX-License-Identifier: Apache-2.0

package analyzer

import (
	"slices"
	"testing"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Children get the points that follow, once, and so do theirs.
func TestFollowedIntoChildren(t *testing.T) {
	image := func(handle uint64, pid, parent int32) *attunev1.Process {
		return &attunev1.Process{Handle: handle, ParentPid: parent, Identity: &attunev1.ProcessIdentity{Pid: pid}}
	}
	a := &asker{wishes: []*wish{
		{number: 1, text: "a:f", spec: &attunev1.MeasurePoint{Id: "a:f"}, process: image(1, 7, 1), follow: true},
		{number: 2, text: "a:g", spec: &attunev1.MeasurePoint{Id: "a:g"}, process: image(1, 7, 1)},
	}, last: 2}
	started := func(process *attunev1.Process, update bool) (ids []string) {
		t.Helper()
		r, err := a.ProcessStarted(t.Context(), &attunev1.ProcessStartedRequest{Process: process, Update: update})
		if err != nil {
			t.Fatal(err)
		}
		for _, point := range r.GetReaction().GetAddPoints() {
			if !slices.Equal(point.GetProcesses(), []uint64{process.GetHandle()}) {
				t.Errorf("%s is asked for in %v", point.GetId(), point.GetProcesses())
			}
			ids = append(ids, point.GetId())
		}
		return ids
	}
	for _, step := range []struct {
		name    string
		process *attunev1.Process
		update  bool
		want    []string
	}{
		{"stranger", image(2, 8, 1), false, nil},
		{"child", image(3, 9, 7), false, []string{"a:f in 9"}},
		{"child, of which more is known", image(3, 9, 7), true, nil},
		{"child, told again", image(3, 9, 7), false, nil},
		{"child of the child", image(4, 10, 9), false, []string{"a:f in 10"}},
		{"child that runs another program", image(5, 9, 7), false, []string{"a:f in 9"}},
	} {
		if got := started(step.process, step.update); !slices.Equal(got, step.want) {
			t.Errorf("%s: %v, want %v", step.name, got, step.want)
		}
	}
	if n := len(a.wishes); n != 4 || a.wishes[3].number != 4 {
		t.Errorf("%d wishes: %+v", n, a.wishes)
	}
}

// Two points that are alike share an index, and not their numbers.
func TestSumsHaveNumbers(t *testing.T) {
	process := &attunev1.Process{Handle: 1, Identity: &attunev1.ProcessIdentity{Pid: 7}}
	a := &asker{wishes: []*wish{{number: 1, text: "a:f", process: process}, {number: 4, text: "a:f sum arg0", process: process}}}
	shared := &attunev1.Aggregate{Point: 3, Process: 1, Count: 2}
	sums := []*attunev1.NamedAggregate{
		{PointId: "a:f in 7", Aggregate: shared}, {PointId: "a:f sum arg0 in 7", Aggregate: shared}, {PointId: "gone in 7", Aggregate: shared},
	}
	a.number(sums)
	if sums[0].GetPointId() != "1" || sums[1].GetPointId() != "4" || sums[2].GetPointId() != "" {
		t.Errorf("%v", sums)
	}
}
