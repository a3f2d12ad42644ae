// SPDX-License-Identifier: Apache-2.0

package change

import (
	"os"
	"testing"

	"github.com/attune-hpc/attune/controller/member"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// What becomes of a point in a process is kept until the process ends, and not what is
// told of it afterwards by whoever was at work there.
func TestStatesEndWithTheirProcess(t *testing.T) {
	members := member.NewSet()
	w := NewWanted(WantedOptions{Members: members, Answer: func(*attunev1.ManageRequest) {}})
	const point = 3
	w.expect(difference{come: []*attunev1.PointWant{{Index: point}}})
	m := member.New(&attunev1.Process{Handle: 7, Identity: &attunev1.ProcessIdentity{Pid: int32(os.Getpid())}}, member.Options{})
	members.Add(m)
	placed := func() {
		w.Status(&attunev1.PointStatus{Point: point, Process: m.Handle(), State: attunev1.PointState_POINT_STATE_PLACED})
	}
	placed()
	w.Status(&attunev1.PointStatus{Point: point}) // of no process
	if all := w.statesOf([]uint16{point}); len(all) != 2 {
		t.Fatalf("states %v, want two", all)
	}
	members.Remove(m.Handle())
	placed()
	if err := members.Leave(m); err != nil {
		t.Fatal(err)
	}
	placed()
	if all := w.statesOf([]uint16{point}); len(all) != 1 || all[0].GetProcess() != 0 {
		t.Errorf("states %v, want the one that is of no process", all)
	}
}
