// SPDX-License-Identifier: Apache-2.0

package fold

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/proto/attune/series"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// step is a proposal of tunlet malloc as it stands, with the outcomes of its changes.
func step(number uint64, state string, gain float64, outcomes ...attunev1.Outcome) *attunev1.RecordedProposal {
	p := &attunev1.RecordedProposal{Number: number, Tunlet: "malloc", State: state, Gain: gain}
	if gain > 0 {
		p.Judgement = &attunev1.RecordedJudgement{Gain: gain}
	}
	for i, o := range outcomes {
		ch := &attunev1.RecordedChange{Spec: &attunev1.Change{Id: string(rune('a' + i))}, Outcome: o}
		if o == attunev1.Outcome_OUTCOME_APPLIED || o == attunev1.Outcome_OUTCOME_UNDONE || o == attunev1.Outcome_OUTCOME_GONE {
			ch.AppliedNanos = 1
		}
		p.Changes = append(p.Changes, ch)
	}
	return p
}

// TestFates: what becomes of a change is counted once, however often it is told, taken back to
// compare or compared again, and stays counted when the session forgets the proposal.
func TestFates(t *testing.T) {
	const none, applied, refused, failed, undone, gone = attunev1.Outcome_OUTCOME_UNSPECIFIED, attunev1.Outcome_OUTCOME_APPLIED,
		attunev1.Outcome_OUTCOME_REFUSED, attunev1.Outcome_OUTCOME_FAILED, attunev1.Outcome_OUTCOME_UNDONE, attunev1.Outcome_OUTCOME_GONE
	times := func(p *attunev1.RecordedProposal, n uint32) *attunev1.RecordedProposal {
		p.Times = n
		return p
	}
	part := func(state string, outcome attunev1.Outcome) *attunev1.RecordedProposal { // with the first one's second change
		p := step(2, state, 3, none, outcome)
		p.Changes = p.GetChanges()[1:]
		return p
	}
	again := step(1, "failed", 2, refused)
	again.Changes[0].AppliedNanos = 1
	canary := step(1, stateKept, 3, applied)
	canary.Canary = true
	sibling := step(2, stateKept, 3, none, applied)
	sibling.Judgement, sibling.Changes = nil, sibling.GetChanges()[1:]
	for _, tt := range []struct {
		name  string
		steps []*attunev1.RecordedProposal
		want  map[string]uint64 // by result
		gains []float64
	}{
		{"waits", []*attunev1.RecordedProposal{step(1, "waiting", 0, none)}, map[string]uint64{}, nil},
		{
			"kept", []*attunev1.RecordedProposal{
				step(1, "applying", 0, none, none), step(1, "judging", 0, applied, applied), step(1, stateKept, 1.5, applied, applied), step(1, stateKept, 1.5, applied, applied),
			}, map[string]uint64{"applied": 2, "kept": 2}, []float64{1.5},
		},
		{
			"undone", []*attunev1.RecordedProposal{step(1, "judging", 0, applied), step(1, "undoing", 0, applied), step(1, "undone", 0, undone), step(1, "undone", 0, undone)},
			map[string]uint64{"applied": 1, "undone": 1}, nil,
		},
		{
			"kept, then undone", []*attunev1.RecordedProposal{step(1, stateKept, 2, applied), step(1, "undone", 2, undone)},
			map[string]uint64{"applied": 1, "kept": 1, "undone": 1}, []float64{2},
		},
		{
			"kept, and compared again twice", []*attunev1.RecordedProposal{
				step(1, "judging", 0, applied), step(1, "judging", 0, undone), step(1, "judging", 0, applied), step(1, stateKept, 2, applied),
				step(1, "judging", 2, undone), step(1, stateKept, 2, applied), step(1, "judging", 2, undone), step(1, stateKept, 2, applied),
			}, map[string]uint64{"applied": 1, "kept": 1}, []float64{2},
		},
		{
			"given back when the session ends", []*attunev1.RecordedProposal{
				step(1, "judging", 0, applied, applied), step(1, "judging", 0, undone, undone), step(1, stateKept, 2, applied, applied),
				step(1, "undoing", 2, undone, applied), step(1, stateKept, 2, undone, undone), step(1, stateKept, 2, undone, undone),
			}, map[string]uint64{"applied": 2, "kept": 2, "undone": 2}, []float64{2},
		},
		{
			"its other process ends between two turns", []*attunev1.RecordedProposal{
				step(1, "judging", 0, applied, applied), step(1, "judging", 0, undone, undone), step(1, "ended", 0, gone, undone),
			}, map[string]uint64{"applied": 2, "undone": 1}, nil,
		},
		{
			"refused when it was to be made again", []*attunev1.RecordedProposal{step(1, stateKept, 2, applied), step(1, "judging", 2, undone), again, again},
			map[string]uint64{"applied": 1, "kept": 1, "undone": 1}, []float64{2},
		},
		{
			"partly", []*attunev1.RecordedProposal{step(1, "applying", 0, applied, refused, failed), step(1, "failed", 0, undone, refused, failed)},
			map[string]uint64{"applied": 1, "undone": 1, "refused": 1, "failed": 1}, nil,
		},
		{
			"refused as a whole, three times", []*attunev1.RecordedProposal{
				times(step(1, stateRefused, 0, none, none), 1), times(step(1, stateRefused, 0, none, none), 3), times(step(1, stateRefused, 0, none, none), 3),
			}, map[string]uint64{"refused": 6}, nil,
		},
		{
			"kept, and taken back in a part, as a proposal of its own", []*attunev1.RecordedProposal{
				step(1, stateKept, 2, applied, applied), step(1, stateKept, 2, applied), part("undoing", applied), part("undone", undone), part("undone", undone),
			}, map[string]uint64{"applied": 2, "kept": 2, "undone": 1}, []float64{2},
		},
		{
			"kept, and a part told of before the rest", []*attunev1.RecordedProposal{
				step(1, stateKept, 2, applied, applied), part("undoing", applied), step(1, stateKept, 2, applied), part("undone", undone), step(1, "undone", 2, undone),
			}, map[string]uint64{"applied": 2, "kept": 2, "undone": 2}, []float64{2},
		},
		{
			"kept, and a part that cannot be taken back", []*attunev1.RecordedProposal{
				step(1, stateKept, 2, applied, applied), part("undoing", applied), step(1, stateKept, 2, applied), part(stateKept, applied),
			}, map[string]uint64{"applied": 2, "kept": 2}, []float64{2},
		},
		{"a sibling's gain was measured once", []*attunev1.RecordedProposal{step(1, stateKept, 3, applied), sibling}, map[string]uint64{"applied": 2, "kept": 2}, []float64{3}},
		{"a canary's gain is the whole's", []*attunev1.RecordedProposal{canary, part(stateKept, applied)}, map[string]uint64{"applied": 2, "kept": 2}, []float64{3}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := NewAccount()
			for _, p := range tt.steps {
				a.Take(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Proposal{Proposal: p}})
			}
			a.Take(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Omission{Omission: &attunev1.RecordedOmission{Proposals: []uint64{1}}}})
			want := make(map[Fate]uint64)
			for result, n := range tt.want {
				want[Fate{"malloc", result}] = n
			}
			var gains []float64
			f := a.Figures()
			for _, g := range f.Gains {
				gains = append(gains, g.Ratio)
			}
			if diff := cmp.Diff(want, f.Changes, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tt.gains, gains); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestSignalsAddUp: what processes use is counted from their first sample on, also of those
// that have ended; what they hold while they run.
func TestSignalsAddUp(t *testing.T) {
	a := NewAccount()
	sample := func(process, faults, bytes uint64) {
		a.Take(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Samples{Samples: &attunev1.SampleBatch{Samples: []*attunev1.Sample{{
			Process: process, Tables: []*attunev1.Table{series.SignalTable(
				series.Reading{ID: series.MinorFaults, Value: faults}, series.Reading{ID: series.ResidentBytes, Value: bytes},
				series.Reading{ID: series.SignalSize + 7, Value: 1}, // of a newer controller
			)},
		}}}}})
	}
	sample(1, 1000, 10)
	sample(2, 5, 100)
	sample(1, 1007, 20)
	sample(2, 8, 200)
	sample(2, 6, 200) // somebody has read it wrongly
	f := a.Figures()
	if f.Used[series.MinorFaults] != 10 || f.Held[series.ResidentBytes] != 220 || f.Received != 5 {
		t.Errorf("used %d, held %d, received %d", f.Used[series.MinorFaults], f.Held[series.ResidentBytes], f.Received)
	}
	a.Take(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Process{Process: &attunev1.RecordedProcess{Process: &attunev1.Process{Handle: 1}}}})
	a.Take(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_ProcessGone{ProcessGone: &attunev1.RecordedProcessEnd{Ended: &attunev1.ProcessEnded{Process: 1}}}})
	sample(1, 2000, 20) // late
	if f := a.Figures(); f.Used[series.MinorFaults] != 10 || f.Held[series.ResidentBytes] != 200 {
		t.Errorf("one has ended: used %d, held %d", f.Used[series.MinorFaults], f.Held[series.ResidentBytes])
	}
}

// TestLostByPlace: each place of the report has its losses.
func TestLostByPlace(t *testing.T) {
	lost := report.Lost{Ring: 1, Slot: 2, Queue: 3, BPF: 4, Away: 5, Analyzer: 6, Tunlet: 7}
	text, err := json.Marshal(lost)
	if err != nil {
		t.Fatal(err)
	}
	want := make(map[string]uint64)
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, lost.ByPlace()); diff != "" {
		t.Error(diff)
	}
}
