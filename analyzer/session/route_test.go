// SPDX-License-Identifier: Apache-2.0

package session

import (
	"testing"

	"github.com/attune-hpc/attune/analyzer/core"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// lostOf adds up what a tunlet was told that it did not get.
func lostOf(s *scripted) (lost uint64) {
	for _, e := range get(s, func() []*attunev1.HandleEventsRequest { return s.events }) {
		for _, records := range e.GetRecords() {
			lost += records.GetLost()
		}
	}
	return lost
}

// What was lost at any stage is told to whom it may concern, with records or
// without, and stands in the report by stage.
func TestLossesAreTold(t *testing.T) {
	r := newRig(t, core.ModeTune)
	wants := newScripted(t, "wants", &attunev1.Reaction{AddPoints: []*attunev1.MeasurePoint{hook("p", "malloc")}})
	other := newScripted(t, "other", nil)
	r.session.TunletReady(wants)
	r.session.TunletReady(other)
	r.connect("ac1", 1)
	r.settle("wants", "other")
	r.session.Publish("ac1", &attunev1.PublishRequest{Event: &attunev1.PublishRequest_Records{
		Records: &attunev1.RecordBatch{Process: 1, LostRing: 1, LostQueue: 2, LostBpf: 4},
	}})
	r.session.Publish("ac1", &attunev1.PublishRequest{Event: &attunev1.PublishRequest_ProcessEnded{
		ProcessEnded: &attunev1.ProcessEnded{Process: 1, LostRing: 1, LostBpf: 4},
	}})
	r.report()
	r.settle("wants", "other")
	for tunlet, want := range map[*scripted]uint64{wants: 7, other: 0} {
		if lost := lostOf(tunlet); lost != want {
			t.Errorf("tunlet %s was told of %d lost records, want %d", tunlet.name, lost, want)
		}
	}
	if e := r.report().Events.Lost; e.Ring != 1 || e.Queue != 2 || e.BPF != 4 {
		t.Errorf("report of losses: %+v", e)
	}
}

// Records of a process that nobody has told of are lost, and counted.
func TestRecordsOfNobody(t *testing.T) {
	r := newRig(t, core.ModeTune)
	r.connect("ac1", 1)
	r.records("ac1", 2, 1, 1, 1)
	if lost := r.report().Events.Lost.Analyzer; lost != 3 {
		t.Errorf("lost in the analyzer: got %d, want 3", lost)
	}
}
