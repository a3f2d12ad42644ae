// SPDX-License-Identifier: Apache-2.0

package core

import (
	"cmp"
	"slices"
	"testing"
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// tried has one change proposed after half a second at a speed of 100.
func tried(predicted float64) *script {
	s := &script{core: New(Config{Mode: ModeTune})}
	s.answered(TunletReady{Info: &attunev1.DescribeResponse{Name: "t", Knobs: []*attunev1.Knob{{Name: "k"}}}}, 0)
	s.answered(ProcessStarted{Process: 1, Executable: "/bin/app"}, 0)
	s.runs(500*time.Millisecond, 100, 100)
	s.answered(Propose{Tunlet: "t", Proposal: proposalOf("p", "k", predicted)}, 0)
	return s
}

// runs lets the application run until then: off is its speed without the change,
// on that with it.
func (s *script) runs(until time.Duration, off, on float64) {
	for s.now < until {
		s.now += 50 * time.Millisecond
		value := off
		if s.changed("app") {
			value = on
		}
		s.answered(Sample{Tunlet: "t", Scope: "app", Value: value + float64(s.now/(50*time.Millisecond)%3), At: s.now}, 0)
	}
}

// idles lets time pass in which nothing is measured.
func (s *script) idles(until time.Duration) {
	for s.now < until {
		s.now += 50 * time.Millisecond
		s.answered(Tick{}, 0)
	}
}

// Only what was measured to the end is known to be useless in the next run.
func TestUseless(t *testing.T) {
	withdraw := Withdraw{Tunlet: "t", Proposal: "p", Reason: "for the test"}
	tests := []struct {
		name string
		run  func(s *script)
		want bool
	}{
		{"no gain", func(s *script) { s.runs(60*time.Second, 100, 100) }, true},
		{"a loss", func(s *script) { s.runs(60*time.Second, 100, 20) }, true},
		{"withdrawn in a turn", func(s *script) { s.runs(5*time.Second, 100, 110); s.answered(withdraw, 0) }, false},
		{"the tunlet crashed in a turn", func(s *script) {
			s.runs(5*time.Second, 100, 110)
			s.answered(TunletGone{Tunlet: "t", Reason: "for the test"}, 0)
		}, false},
		{"not measurable", func(s *script) { s.runs(5*time.Second, 100, 110); s.idles(time.Minute) }, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := tried(0)
			tt.run(s)
			v := s.core.Proposals()[0]
			if v.GetState() != "undone" || v.GetJudgement() == nil || v.GetUseless() != tt.want {
				t.Errorf("%v, judged %v, useless: %v, want %v", v.GetState(), v.GetJudgement() != nil, v.GetUseless(), tt.want)
			}
		})
	}
}

// A kept change that is being compared again was good until then.
func TestBrokenOffAgain(t *testing.T) {
	tests := []struct {
		name  string
		event Event
		want  State
	}{
		{"withdrawn", Withdraw{Tunlet: "t", Proposal: "p", Reason: "for the test"}, StateUndone},
		{"its process ends", ProcessEnded{Process: 1}, StateKept},
		{"the session ends", Finish{}, StateKept},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := tried(4)
			s.runs(2*time.Second, 100, 400)
			s.runs(8*time.Second, 60, 59)
			if p := s.core.line.active[0]; !p.trial.IsRetrial() || p.trial.Judgement.Turns == 0 {
				t.Fatal("it is not being compared again")
			}
			s.answered(tt.event, 0)
			v := s.core.Proposals()[0]
			if v.GetState() != tt.want.String() || v.GetJudgement().GetGain() < 2 || v.GetUseless() {
				t.Errorf("%v, gain %v, useless: %v", v.GetState(), v.GetJudgement().GetGain(), v.GetUseless())
			}
			if len(s.core.restraints.tries)+len(s.core.restraints.rests) > 0 {
				t.Error("it counts as a try without success")
			}
		})
	}
}

// Proposals returns all remembered proposals in the order in which they ended,
// then the active ones.
func (c *Core) Proposals() []*attunev1.RecordedProposal {
	var out []*attunev1.RecordedProposal
	for _, p := range c.archive.finished {
		out = append(out, p.view())
	}
	for _, p := range c.line.active {
		out = append(out, p.view())
	}
	return out
}

// Refusals returns the proposals refused on arrival, at most maxRefusals, in
// the order in which they came first.
func (c *Core) Refusals() []*attunev1.RecordedProposal {
	var out []*attunev1.RecordedProposal
	for _, r := range c.refusals.said {
		out = append(out, r.view)
	}
	slices.SortFunc(out, func(a, b *attunev1.RecordedProposal) int { return cmp.Compare(a.GetNumber(), b.GetNumber()) })
	return out
}
