// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"testing"

	"github.com/attune-hpc/attune/analyzer/core"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestManyChangedProcesses is a bag of tasks that are changed one and all.
func TestManyChangedProcesses(t *testing.T) {
	r := newRig(t, core.ModeTune)
	r.connect("ac1")
	for n := uint64(1); n <= maxChanged+300; n++ {
		r.session.Publish("ac1", &attunev1.PublishRequest{Event: &attunev1.PublishRequest_ProcessStarted{ProcessStarted: &attunev1.Process{Handle: n}}})
		r.session.post(func() {
			id := fmt.Sprint("c", n)
			r.session.processes[n].changes = []string{id}
			r.session.changedIn[id] = n
		})
		r.session.Publish("ac1", &attunev1.PublishRequest{Event: &attunev1.PublishRequest_ProcessEnded{ProcessEnded: &attunev1.ProcessEnded{Process: n}}})
	}
	rep := r.report()
	if len(rep.Processes) != maxChanged || len(rep.Remarks) != 1 {
		t.Errorf("%d processes, remarks %+v", len(rep.Processes), rep.Remarks)
	}
	r.session.post(func() {
		if n := len(r.session.changedIn); n != maxChanged {
			t.Errorf("%d changes are remembered, want %d", n, maxChanged)
		}
		r.session.undo(core.Undo{Request: "r1", Changes: []string{"c1"}})
		if n := len(r.session.requests); n != 0 {
			t.Error("the undo in a process that is forgotten is never answered")
		}
	})
	r.report()
}
