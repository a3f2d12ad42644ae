// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"testing"

	"github.com/attune-hpc/attune/analyzer/core"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// unit is a record of a point, or with point 0 a continuation, that holds n.
func unit(point uint16, n int64) []byte {
	r := attunev1.Record{Point: point, Monotonic: n}
	if point == 0 {
		r.Flags = attunev1.RecordContinuation
	}
	return attunev1.AppendRecord(nil, r)
}

func TestSplitKeepsContinuations(t *testing.T) {
	first, second := &tunlet{asker: asker{name: "first"}}, &tunlet{asker: asker{name: "second"}}
	first.tunlet, second.tunlet = first, second
	ps := &points{byIndex: map[uint32]*point{
		1: {subscribers: []subscriber{{&first.asker, wish{id: "a"}}, {&second.asker, wish{id: "a"}}, {&first.asker, wish{id: "the same"}}, {&asker{}, wish{id: "a"}}}},
		2: {subscribers: []subscriber{{&second.asker, wish{id: "b"}}}},
	}}
	stray := unit(0, 9) // belongs to no record
	data := bytes.Join([][]byte{stray, unit(1, 1), unit(0, 2), unit(0, 3), unit(2, 4), unit(0, 5), unit(3, 6), unit(0, 7), unit(1, 8)}, nil)
	parts := ps.split(data)
	for _, tt := range []struct {
		tunlet *tunlet
		want   [][]byte
	}{
		{first, [][]byte{unit(1, 1), unit(0, 2), unit(0, 3), unit(1, 8)}},
		{second, [][]byte{unit(1, 1), unit(0, 2), unit(0, 3), unit(2, 4), unit(0, 5), unit(1, 8)}},
	} {
		if want := bytes.Join(tt.want, nil); !bytes.Equal(parts[tt.tunlet].packed, want) {
			t.Errorf("%s got\n%v, want\n%v", tt.tunlet.name, parts[tt.tunlet].packed, want)
		}
	}
	if parts[first].records != 2 || parts[second].records != 3 {
		t.Errorf("%d and %d records", parts[first].records, parts[second].records)
	}
}

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
