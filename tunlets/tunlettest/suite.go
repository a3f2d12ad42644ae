// SPDX-License-Identifier: Apache-2.0

package tunlettest

import (
	"path"
	"regexp"
	"slices"
	"strings"
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
func Suite[T Runner[T]](t T, newTunlet func() sdk.Tunlet, trouble ...func() *Process) {
	SuiteWith(t, nil, newTunlet, trouble...)
}

// SuiteWith is Suite for a tunlet that is configured with options, by name: one that
// has to be told of the program is of no use, and passes, without.
func SuiteWith[T Runner[T]](t T, options map[string]string, newTunlet func() sdk.Tunlet, trouble ...func() *Process) {
	run(t, subject{
		serve: func(tb TB) attunev1.TunletServiceClient { return serve(tb, newTunlet) }, options: options,
		trouble: trouble, sure: len(trouble) > 0,
	})
}

// Conformance runs the suite on a tunlet that is a process of its own, in
// whatever language it is written. connect starts one and returns the connection
// to it; it is called once or more for each part. options are those of the tunlet, by
// name. The tunlet's own problem is not known here: processes that meet the conditions
// in its Wake stand for it.
func Conformance[T Runner[T]](t T, options map[string]string, connect func(tb TB) attunev1.TunletServiceClient) {
	s := subject{serve: connect, options: options}
	for _, w := range s.harness(t).StartSession().GetWake() {
		s.trouble = append(s.trouble, func() *Process { return waking(w) })
	}
	run(t, s)
}

func run[T Runner[T]](t T, s subject) {
	for _, c := range checks() {
		t.Run(c.name, func(t T) { c.run(t, s) })
	}
}

// waking makes a process that meets a condition of waking.
func waking(w *attunev1.Wake) *Process {
	p := Computing()
	if w.GetObject() != "" {
		p.Objects = []string{"/usr/lib/" + strings.NewReplacer("*", "", "?", "x").Replace(w.GetObject())}
	}
	const (
		beyond  = 2  // times the level
		perCall = 64 // bytes: who calls often moves little
	)
	for _, l := range w.GetLevels() {
		signal, of, value := sdk.Signal(l.GetSeries()), sdk.Signal(l.GetOf()), beyond*l.GetAtLeast()
		if of != 0 {
			value *= p.Rates[of] + p.Gauges[of]
		}
		if signal.Gauge() {
			p.Gauges[signal] = value
		} else {
			p.Rates[signal] = value
		}
	}
	for calls, bytes := range map[sdk.Signal]sdk.Signal{sdk.ReadCalls: sdk.ReadBytes, sdk.WriteCalls: sdk.WrittenBytes} {
		if n := p.Rates[calls]; n > 0 && p.Rates[bytes] == 0 {
			p.Rates[bytes] = perCall * n
		}
	}
	if w.GetTable() != 0 {
		p.Details = func(time.Duration) *sdk.Details {
			return &sdk.Details{Sockets: &sdk.SocketDetails{Total: 1}, Pipes: &sdk.PipeDetails{Total: 1}}
		}
	}
	return p
}

// subject is what the suite looks at.
type subject struct {
	serve   func(tb TB) attunev1.TunletServiceClient // once for each harness, and for each restart
	options map[string]string
	trouble []func() *Process
	sure    bool // the trouble is the tunlet's own: it must propose something
}

func (s subject) harness(tb TB) *Harness {
	tb.Helper()
	h := newHarness(tb, s.serve)
	h.Options, h.trouble = s.options, s.trouble
	return h
}

// check is one part of the suite.
type check struct {
	name string
	run  func(tb TB, s subject)
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
		{"finds its problem where samples are rare", findsAtLeisure},
		{"reports the objective of what was kept", reportsKept},
		{"takes up what it had kept when it is started again", takesUpKept},
		{"does the same in every session", repeats},
	}
}

func describes(tb TB, s subject) {
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
		if reason := attunev1.OutOfBounds(k, k.GetMin()); reason != "" {
			tb.Errorf("its least value is none: %s", reason)
		}
	}
	checkWake(tb, d.GetWake())
	checkOptions(tb, d.GetOptions())
	if again := h.StartSession(); !proto.Equal(d, again) {
		tb.Errorf("second description differs:\n%v\n%v", d, again)
	}
}

// checkWake fails for a condition that never holds, or always.
func checkWake(tb TB, conditions []*attunev1.Wake) {
	tb.Helper()
	for _, w := range conditions {
		if w.GetObject() == "" && len(w.GetLevels()) == 0 {
			tb.Errorf("wakes in every process: leave Wake empty instead")
		}
		if _, err := path.Match(w.GetObject(), ""); err != nil || strings.Contains(w.GetObject(), "/") {
			tb.Errorf("wakes for object %q: want a pattern of base names (%v)", w.GetObject(), err)
		}
		switch detail := sdk.Detail(w.GetTable()); detail {
		case 0, sdk.DetailSockets, sdk.DetailPipes:
		default:
			tb.Errorf("wakes with %v: want sockets or pipes, of which a process may have none", detail)
		}
		for _, l := range w.GetLevels() {
			if signal := sdk.Signal(l.GetSeries()); signal.String() == "" || l.GetAtLeast() <= 0 {
				tb.Errorf("wakes at %v of signal %d: want a signal there is, and more than nothing", l.GetAtLeast(), l.GetSeries())
			}
		}
	}
}

func checkOptions(tb TB, options []*attunev1.Option) {
	tb.Helper()
	seen := map[string]bool{}
	for _, o := range options {
		if !regexp.MustCompile(`^[a-z][a-z0-9_]*$`).MatchString(o.GetName()) || o.GetDescription() == "" || seen[o.GetName()] {
			tb.Errorf("option %q: want a name of its own, of lower case letters, digits and underscores, and a description", o.GetName())
		}
		seen[o.GetName()] = true
		if err := sdk.OptionFrom(o).Validate(); err != nil {
			tb.Errorf("%v", err)
		}
	}
}

func refusesVersion(tb TB, s subject) {
	h := s.harness(tb)
	ctx, cancel := h.Context()
	defer cancel()
	_, err := h.Client.Describe(ctx, &attunev1.DescribeRequest{ApiVersions: []string{"999"}})
	if status.Code(err) != codes.FailedPrecondition {
		tb.Errorf("describe for API version 999: %v, want FailedPrecondition", err)
	}
}

func survivesEmpty(tb TB, s subject) {
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
	expectSilence(h, tb, "empty messages")
}

func ignoresUnknown(tb TB, s subject) {
	h := s.harness(tb)
	h.checking = true
	h.StartSession()
	p := h.StartProcess(wild(1))
	for range 40 {
		h.Round()
		stranger := p.sample(Period)
		stranger.Process = 999_999
		call(h, one(h.Client.HandleEvents), &attunev1.HandleEventsRequest{
			Samples: &attunev1.SampleBatch{UnixNano: h.Now().UnixNano(), Samples: []*attunev1.Sample{stranger}},
		})
	}
	checkNames(h, tb)
}

func silentWhenQuiet(tb TB, s subject) {
	h := s.harness(tb)
	h.Refuse = ownFunction
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
	expectSilence(h, tb, "a program that sleeps")
}

func silentWhenComputing(tb TB, s subject) {
	h := s.harness(tb)
	h.Refuse = ownFunction
	h.StartSession()
	h.StartProcess(Computing())
	h.Run(5 * time.Second)
	expectSilence(h, tb, "a program that computes")
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

// expectSilence fails if the tunlet touched the program or proposed anything. What was refused
// does not touch it.
func expectSilence(h *Harness, tb TB, program string) {
	tb.Helper()
	if len(h.Proposals) > 0 {
		tb.Errorf("%s: proposed %v", program, h.Proposals[0])
	}
	asked := slices.DeleteFunc(h.Points(), func(id string) bool { return h.points[id].refused })
	if len(asked) > 0 {
		tb.Errorf("%s: asked for measure points %v", program, asked)
	}
	if len(h.Remarks) > 0 {
		tb.Errorf("%s: remarked %v", program, h.Remarks[0])
	}
}
