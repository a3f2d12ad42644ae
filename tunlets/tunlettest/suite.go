// SPDX-License-Identifier: Apache-2.0

package tunlettest

import (
	"regexp"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

// Suite runs what every tunlet must pass, whatever problem it solves: that it
// describes itself, survives whatever comes in whatever order, is silent where
// there is nothing, names only what exists, and does the same again when it
// sees the same again.
//
// trouble makes processes that have the tunlet's own problem; with them, the
// parts of the suite that look at proposals have some to look at. Each call
// makes a new process.
func Suite(t *testing.T, newTunlet func() sdk.Tunlet, trouble ...func() *Process) {
	for _, c := range checks() {
		t.Run(c.name, func(t *testing.T) { c.run(t, subject{newTunlet, trouble}) })
	}
}

// subject is what the suite looks at.
type subject struct {
	newTunlet func() sdk.Tunlet
	trouble   []func() *Process
}

func (s subject) harness(tb testing.TB) *Harness {
	tb.Helper()
	h := New(tb, s.newTunlet)
	h.trouble = s.trouble
	return h
}

// check is one part of the suite.
type check struct {
	name string
	run  func(tb testing.TB, s subject)
}

func checks() []check {
	return []check{
		{"describes itself", describes},
		{"refuses a foreign API version", refusesVersion},
		{"survives empty messages", survivesEmpty},
		{"survives any order of calls", survivesDisorder},
		{"ignores unknown processes", ignoresUnknown},
		{"is silent on a quiet program", silentWhenQuiet},
		{"is silent on a computing program", silentWhenComputing},
		{"names only what exists", namesWhatExists},
		{"gives points back when processes end", givesBack},
		{"does the same in every session", repeats},
	}
}

func describes(tb testing.TB, s subject) {
	h := s.harness(tb)
	d := h.StartSession()
	if !regexp.MustCompile(`^[a-z][a-z0-9-]*$`).MatchString(d.GetName()) {
		tb.Errorf("name %q: want lower case letters, digits and hyphens", d.GetName())
	}
	for what, text := range map[string]string{
		"version": d.GetVersion(), "summary": d.GetSummary(), "objective name": d.GetObjective().GetName(),
		"objective unit": d.GetObjective().GetUnit(), "objective description": d.GetObjective().GetDescription(),
	} {
		if text == "" {
			tb.Errorf("%s is missing", what)
		}
	}
	if d.GetApiVersion() != sdk.APIVersion {
		tb.Errorf("API version %q, want %q", d.GetApiVersion(), sdk.APIVersion)
	}
	if d.GetMinGain() < 0 {
		tb.Errorf("min gain %v is negative", d.GetMinGain())
	}
	seen := map[string]bool{}
	for _, k := range d.GetKnobs() {
		if k.GetName() == "" || k.GetDescription() == "" || seen[k.GetName()] {
			tb.Errorf("knob %q: want a name of its own and a description", k.GetName())
		}
		seen[k.GetName()] = true
	}
	if again := h.StartSession(); !proto.Equal(d, again) {
		tb.Errorf("second description differs:\n%v\n%v", d, again)
	}
}

func refusesVersion(tb testing.TB, s subject) {
	h := s.harness(tb)
	ctx, cancel := h.Context()
	defer cancel()
	_, err := h.Client.Describe(ctx, &attunev1.DescribeRequest{ApiVersions: []string{"999"}})
	if status.Code(err) != codes.FailedPrecondition {
		tb.Errorf("describe for API version 999: %v, want FailedPrecondition", err)
	}
}

func survivesEmpty(tb testing.TB, s subject) {
	h := s.harness(tb)
	h.StartSession()
	h.StartProcess(&Process{})
	h.Round()
	call(h, one(h.Client.HandleEvents), &attunev1.HandleEventsRequest{})
	call(h, one(h.Client.HandleEvents), &attunev1.HandleEventsRequest{Samples: &attunev1.SampleBatch{}})
	call(h, one(h.Client.HandleEvents), &attunev1.HandleEventsRequest{ToUnixNano: h.Now().UnixNano()})
	call(h, one(h.Client.ProcessStarted), &attunev1.ProcessStartedRequest{})
	call(h, one(h.Client.ProcessEnded), &attunev1.ProcessEndedRequest{})
	call(h, one(h.Client.PointChanged), &attunev1.PointChangedRequest{})
	call(h, one(h.Client.ProposalChanged), &attunev1.ProposalChangedRequest{})
	call(h, one(h.Client.Tick), &attunev1.TickRequest{})
	h.Verdict(&attunev1.EvaluateRequest{})
	h.expectSilence(tb, "empty messages")
}

func ignoresUnknown(tb testing.TB, s subject) {
	h := s.harness(tb)
	h.checking = true
	h.StartSession()
	p := h.StartProcess(wild(1))
	for range 40 {
		h.Round()
		stranger := p.sample()
		stranger.Process = 999_999
		call(h, one(h.Client.HandleEvents), &attunev1.HandleEventsRequest{
			Samples: &attunev1.SampleBatch{UnixNano: h.Now().UnixNano(), Samples: []*attunev1.Sample{stranger}},
		})
	}
	h.checkNames(tb)
}

func silentWhenQuiet(tb testing.TB, s subject) {
	h := s.harness(tb)
	h.StartSession()
	h.StartProcess(&Process{
		Rates: map[sdk.Signal]float64{
			sdk.CPUUser: 1e6, sdk.CPUSystem: 1e6, sdk.RunTime: 2e6, sdk.RunqueueWait: 1e4,
			sdk.MinorFaults: 1, sdk.VoluntarySwitches: 10, sdk.InvoluntarySwitches: 1,
		},
		Gauges: map[sdk.Signal]float64{
			sdk.ResidentBytes: 1e7, sdk.Threads: 1, sdk.RunnableThreads: 0, sdk.CPUsAllowed: 2,
		},
	})
	h.Run(5 * time.Second)
	h.expectSilence(tb, "a program that sleeps")
}

func silentWhenComputing(tb testing.TB, s subject) {
	h := s.harness(tb)
	h.StartSession()
	h.StartProcess(Computing())
	h.Run(5 * time.Second)
	h.expectSilence(tb, "a program that computes")
}

// Computing is a process that does nothing but compute, on a CPU of its own.
func Computing() *Process {
	return &Process{
		Rates: map[sdk.Signal]float64{
			sdk.CPUUser: 1e9, sdk.CPUSystem: 1e6, sdk.RunTime: 1e9, sdk.RunqueueWait: 1e6,
			sdk.MinorFaults: 5, sdk.VoluntarySwitches: 1, sdk.InvoluntarySwitches: 20,
		},
		Gauges: map[sdk.Signal]float64{
			sdk.ResidentBytes: 1e8, sdk.Threads: 1, sdk.RunnableThreads: 1, sdk.CPUsAllowed: 2,
		},
	}
}

// expectSilence fails if the tunlet touched the program or proposed anything.
func (h *Harness) expectSilence(tb testing.TB, program string) {
	tb.Helper()
	if len(h.Proposals) > 0 {
		tb.Errorf("%s: proposed %v", program, h.Proposals[0])
	}
	if len(h.Points()) > 0 {
		tb.Errorf("%s: asked for measure points %v", program, h.Points())
	}
	if len(h.Remarks) > 0 {
		tb.Errorf("%s: remarked %v", program, h.Remarks[0])
	}
}
