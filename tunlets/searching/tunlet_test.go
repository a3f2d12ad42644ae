// SPDX-License-Identifier: Apache-2.0

package searching_test

import (
	"math"
	"testing"
	"time"

	"go.uber.org/goleak"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/sdk"
	"github.com/attune-hpc/attune/tunlets/searching"
	"github.com/attune-hpc/attune/tunlets/tunlettest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSuite(t *testing.T) { tunlettest.Suite(t, searching.New) }

func TestSuiteConfigured(t *testing.T) {
	tunlettest.SuiteWith(t, told(), searching.New, func() *tunlettest.Process {
		return solver(func() float64 { return 1000 }, func() uint64 { return 512 })
	})
}

// Whatever the shape and the noise, what is in force at the end is nearly the best
// there is, or the original where that is.
func TestFindsTheBest(t *testing.T) {
	for _, tt := range []struct {
		name     string
		options  map[string]string
		original float64
		rate     func(float64) float64
		least    float64 // share of the best rate
		changed  bool
	}{
		{"a size far away", told(), 512, peak(16, 1000), 0.85, true},
		{"a size near by", told(), 8, peak(16, 1000), 0.85, true},
		{"by a simplex", told("method", "nelder-mead", "tries", "20"), 128, peak(16, 1000), 0.85, true},
		{"no logarithm", told("log", "false", "max", "64"), 64, peak(16, 1000), 0.85, true},
		{"the original is the best", told(), 16, peak(16, 1000), 1, false},
		{"it makes no difference", told(), 16, func(float64) float64 { return 500 }, 1, false},
		{"hardly any difference", told(), 16, func(v float64) float64 { return 500 + v/100 }, 0.98, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newProgram(t, tt.options, 1, tt.original, tt.rate)
			p.finish()
			best := 0.0
			for v := 1.0; v <= 512; v++ {
				best = max(best, tt.rate(v))
			}
			if got := tt.rate(p.value); got < tt.least*best {
				t.Errorf("%v is in force, with %.0f calls/s, want %.0f %% of %.0f", p.value, got, 100*tt.least, best)
			}
			if (p.value != tt.original) != tt.changed {
				t.Errorf("%v is in force, want a change: %v", p.value, tt.changed)
			}
			if want := map[bool]int{true: 1, false: 0}[tt.changed]; len(p.Points()) != want {
				t.Errorf("measure points %v at the end, want %d", p.Points(), want)
			}
			p.checkTrials()
		})
	}
}

// A trial is compared with what the program does next to it: that it becomes faster by
// itself is nobody's merit.
func TestPhasesMislead(t *testing.T) {
	p := newProgram(t, told(), 1, 32, func(float64) float64 { return 500 })
	p.speed = func() float64 { return 1 + p.Elapsed().Minutes() }
	p.finish()
	if p.value != 32 || !p.remarked("none better than 32") {
		t.Errorf("%v is in force; remarks %v", p.value, p.Remarks)
	}
}

func TestBudget(t *testing.T) {
	p := newProgram(t, told("tries", "3"), 1, 512, peak(16, 1000))
	p.finish()
	if n := len(p.Proposals); n != 4 {
		t.Errorf("%d proposals, want 3 and the result", n)
	}
	p = newProgram(t, told("time", "20s"), 1, 512, peak(16, 1000))
	p.finish()
	last := p.Proposals[len(p.Proposals)-1]
	if last.At > 40*time.Second {
		t.Errorf("the last proposal after %v, want it soon after 20 s", last.At)
	}
}

// What the Analyzer does not find to be better does not stay, and the search ends.
func TestResultsAreProven(t *testing.T) {
	p := newProgram(t, told(), 1, 64, peak(16, 100))
	p.distrust = true
	p.finish()
	results := map[int64]bool{}
	for _, one := range p.Proposals {
		if one.GetPredictedGain() > 0 {
			results[one.GetChanges()[0].GetAction().GetSetVariable().GetValue().GetInteger()] = true
		}
	}
	if p.value != 64 || len(p.Points()) > 0 || len(results) != 2 {
		t.Errorf("%v is in force, measure points %v, results %v; want 64, none, and two", p.value, p.Points(), results)
	}
}

// A result that no longer pays is not looked after any more.
func TestKeptAndUndone(t *testing.T) {
	p := newProgram(t, told("tries", "4"), 1, 512, peak(16, 1000))
	p.finish()
	if !p.kept || len(p.Points()) != 1 {
		t.Fatalf("kept: %v, measure points %v", p.kept, p.Points())
	}
	n := len(p.Proposals)
	p.end(attunev1.ProposalState_PROPOSAL_STATE_UNDONE, "regressed")
	p.run(time.Minute)
	if len(p.Points()) > 0 || len(p.Proposals) > n {
		t.Errorf("measure points %v, %d more proposals; want none", p.Points(), len(p.Proposals)-n)
	}
}

// A program that sets its knob itself is left alone, and so is one that is just
// about to.
func TestProgramSetsItsKnob(t *testing.T) {
	p := newProgram(t, told(), 1, 512, peak(16, 1000))
	p.run(5 * time.Second)
	p.own = func(p *program) { p.value = 100 }
	p.run(2 * time.Minute)
	if len(p.Points()) > 0 || p.id != "" || !p.remarked("the program sets it itself") {
		t.Errorf("measure points %v, %q in force, remarks %v", p.Points(), p.id, p.Remarks)
	}
	restless := newProgram(t, told(), 1, 512, peak(16, 1000))
	restless.own = func(p *program) { p.value = 612 - p.value } // 512 and 100 in turns, from the beginning
	restless.run(2 * time.Minute)
	if len(restless.Points()) > 0 || len(restless.Proposals) > 0 || len(restless.Remarks) != 1 || !restless.remarked("the program sets it itself") {
		t.Errorf("measure points %v, proposals %v, remarks %v; want the one remark", restless.Points(), restless.Proposals, restless.Remarks)
	}
	late := newProgram(t, told(), 1, 512, peak(16, 1000))
	late.own = func(p *program) {
		if p.Elapsed() == time.Second {
			p.value, p.original = 100, 100
		}
	}
	late.finish()
	if late.remarked("sets it itself") || late.rate(late.value) < 0.85*late.rate(16) {
		t.Errorf("%v in force, remarks %v", late.value, late.Remarks)
	}
}

// Doubles are compared by their bits, and an original value out of the range is what
// others are compared with nevertheless.
func TestReals(t *testing.T) {
	rate := func(v float64) float64 { return 1000 - 800*math.Abs(v-0.3) }
	p := newProgram(t, told("kind", "real", "min", "0.1", "max", "0.9", "log", "false"), 1, 1, rate)
	p.bits = math.Float64bits
	p.finish()
	if got := rate(p.value); got < 900 {
		t.Errorf("%v is in force, with %.0f calls/s, want at least 900", p.value, got)
	}
	set := p.Proposals[0].GetChanges()[0].GetAction().GetSetVariable()
	if set.GetSize() != 8 || set.GetSymbol() != "block" || set.GetObject() != "solver" {
		t.Errorf("action %v", set)
	}
}

// All ranks get the value; what another program does is nobody's business.
func TestRanks(t *testing.T) {
	p := newProgram(t, told("tries", "3"), 4, 512, peak(16, 1000))
	p.StartProcess(tunlettest.Computing())
	p.run(20 * time.Second)
	for _, one := range p.Proposals {
		if len(one.GetChanges()) != 4 {
			t.Fatalf("changes %v, want 4", one.GetChanges())
		}
	}
	if len(p.Proposals) == 0 || len(p.Points()) > 1 {
		t.Errorf("%d proposals, measure points %v: one rank's calls are enough", len(p.Proposals), p.Points())
	}
	p.finish()
	if n := len(p.Points()); n != 1 {
		t.Errorf("measure points %v after the result was kept, want the one that it is judged by", p.Points())
	}
}

// The next program is searched anew.
func TestNextProgram(t *testing.T) {
	p := newProgram(t, told("tries", "2"), 1, 512, peak(16, 1000))
	p.finish()
	n := len(p.Proposals)
	p.EndProcess(p.processes[0])
	p.id, p.kept, p.value = "", false, p.original
	p.StartProcess(solver(p.now, func() uint64 { return p.bits(p.value) }))
	p.finish()
	if len(p.Proposals) != 2*n {
		t.Errorf("%d proposals for the first, %d for the next one", n, len(p.Proposals)-n)
	}
}

// It gives up where its proposals are refused, and where the function is not found.
func TestRefused(t *testing.T) {
	p := newProgram(t, told(), 1, 512, peak(16, 1000))
	for range 20 {
		p.Run(5 * time.Second)
		for ; p.seen < len(p.Proposals); p.seen++ {
			p.SetState(p.Proposals[p.seen].GetId(), attunev1.ProposalState_PROPOSAL_STATE_REFUSED, "the policy says so")
		}
	}
	if len(p.Proposals) != 3 || len(p.Points()) > 0 || !p.remarked("the policy says so") {
		t.Errorf("%d proposals, measure points %v, remarks %v; want 3, none, the reason", len(p.Proposals), p.Points(), p.Remarks)
	}
	h := tunlettest.New(t, searching.New)
	h.Options = told()
	h.Refuse = func(*attunev1.MeasurePoint, *tunlettest.Process) string { return "no such function" }
	h.StartSession()
	h.StartProcess(solver(func() float64 { return 1 }, func() uint64 { return 1 }))
	h.StartProcess(solver(func() float64 { return 1 }, func() uint64 { return 1 }))
	h.Run(5 * time.Second)
	if len(h.Remarks) != 1 || len(h.Points()) > 0 {
		t.Errorf("remarks %v, measure points %v; want one, none", h.Remarks, h.Points())
	}
}

// Where the overhead budget leaves nothing of the measure point, it is over, in the
// middle of a trial as well.
func TestTooManyCalls(t *testing.T) {
	p := newProgram(t, told(), 1, 512, peak(16, 1000))
	for p.id == "" {
		p.run(tunlettest.Period)
	}
	p.SwitchOff(p.Points()[0], p.processes[0])
	p.run(time.Minute)
	if len(p.Points()) > 0 || p.id != "" || len(p.Proposals) != 1 || !p.remarked("called too often") {
		t.Errorf("measure points %v, %q in force, %d proposals, remarks %v", p.Points(), p.id, len(p.Proposals), p.Remarks)
	}
}

// One disturbance in a trial does not decide what the value is worth.
func TestDisturbances(t *testing.T) {
	p := newProgram(t, told(), 1, 512, peak(16, 1000))
	p.speed = func() float64 {
		if p.Elapsed()%(3*time.Second) < 600*time.Millisecond {
			return 0.1
		}
		return 1
	}
	p.finish()
	if got := p.rate(p.value); got < 0.85*1100 {
		t.Errorf("%v is in force, with %.0f calls/s", p.value, got)
	}
	for _, one := range p.Proposals {
		if gain := one.GetPredictedGain(); gain > 13 {
			t.Errorf("a gain of %v was measured; there is none above 11", gain)
		}
	}
}

// Nothing is watched where nothing may be changed, or nothing was said of the program.
func TestCostsNothing(t *testing.T) {
	for mode, options := range map[string]map[string]string{"tune": nil, "advise": told(), "observe": told()} {
		h := tunlettest.New(t, searching.New)
		h.Options, h.Mode = options, mode
		h.StartSession()
		h.StartProcess(solver(func() float64 { return 1000 }, func() uint64 { return 1 }))
		h.Run(10 * time.Second)
		if len(h.Points())+len(h.Proposals)+len(h.Remarks)+len(h.Objectives) > 0 {
			t.Errorf("mode %s, options %v: measure points %v", mode, options, h.Points())
		}
	}
	for _, o := range searching.New().Describe().Options {
		if want := o.Name == "object" || o.Name == "variable" || o.Name == "progress" || o.Name == "min" || o.Name == "max"; o.Required != want {
			t.Errorf("option %s: needed %v, want %v", o.Name, o.Required, want)
		}
	}
}

// configure hands options to a new tunlet as the SDK does.
func configure(options map[string]string) error {
	tunlet := searching.New()
	settled, err := sdk.SettleOptions(tunlet.Describe().Options, options)
	if err != nil {
		return err
	}
	return tunlet.(sdk.Configurer).Configure(settled)
}

func TestOptionsThatCannotBe(t *testing.T) {
	for _, more := range [][]string{
		{"unknown", "1"}, {"max", "1"}, {"max", "0.5"}, {"min", "1.5"}, {"min", "0"}, {"min", "-5"}, {"max", "1e10"}, {"max", "many"},
		{"max", "1e300", "kind", "real", "size", "4"}, {"tries", "0"}, {"tries", "51"}, {"time", "soon"}, {"object", "["},
		{"method", "guess"}, {"size", "2"}, {"kind", "text"},
	} {
		if configure(told(more...)) == nil {
			t.Errorf("options %v are taken", more)
		}
	}
	if err := configure(told("max", "1e10", "size", "8")); err != nil {
		t.Error(err)
	}
}
