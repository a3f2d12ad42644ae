// SPDX-License-Identifier: Apache-2.0

package tunlettest

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

// good does what a tunlet should, in the simplest way: it watches what has
// libc, and proposes once per process when faults are many.
type good struct {
	windows  map[sdk.Handle]*sdk.Window
	proposed map[sdk.Handle]bool
}

func newGood() sdk.Tunlet {
	return &good{windows: map[sdk.Handle]*sdk.Window{}, proposed: map[sdk.Handle]bool{}}
}

func (*good) Describe() sdk.Description {
	return sdk.Description{
		Name: "good", Version: "1", Summary: "for tests",
		Objective: sdk.Objective{Name: "work_per_second", Unit: "1/s", Description: "work"},
		Knobs:     []sdk.Knob{{Name: "a.b", Description: "a knob"}},
	}
}

func (g *good) ProcessStarted(_ *sdk.Host, p sdk.Process) {
	if g.windows[p.Handle] == nil {
		g.windows[p.Handle] = sdk.NewWindow(2 * Period)
	}
}

func (g *good) ProcessEnded(_ *sdk.Host, e sdk.ProcessEnd) { delete(g.windows, e.Handle) }

func (g *good) HandleSamples(h *sdk.Host, s sdk.Samples) {
	for _, sample := range s.Items {
		w := g.windows[sample.Process]
		if w == nil {
			continue
		}
		w.Add(sample)
		if rate, _ := w.Span().Rate(sdk.MinorFaults); rate > 1000 && !g.proposed[sample.Process] {
			g.proposed[sample.Process] = true
			h.Objective("s", rate)
			h.Propose(proposal(sample.Process))
		}
	}
}

func proposal(p sdk.Handle) sdk.Proposal {
	return sdk.Proposal{
		ID: fmt.Sprint("p", p), Scope: "s", Reason: "many faults",
		Changes: []sdk.Change{{Process: p, Action: sdk.Setting("a.b", sdk.Uint(1))}},
	}
}

func TestSuitePasses(t *testing.T) { Suite(t, newGood) }

// The harness takes what a tunlet's own process takes.
func TestHarnessTakesTheLargestCall(t *testing.T) {
	h := New(t, newGood)
	batch := &attunev1.NamedRecords{Records: make([]byte, sdk.MaxMessage-100)}
	_, err := h.Client.HandleEvents(t.Context(), &attunev1.HandleEventsRequest{Records: []*attunev1.NamedRecords{batch}})
	if code := status.Code(err); code != codes.OK && code != codes.Unimplemented {
		t.Error(err)
	}
}

// Each of the bad ones does one thing wrong.
type (
	nameless   struct{ good }
	panicky    struct{ good }
	noisy      struct{ good }
	forgetless struct{ good }
	strange    struct{ good }
	restless   struct{ good }
	prying     struct{ good }
	seeking    struct{ good }
	silent     struct{}
	sleepless  struct{ good }
	oversleeps struct{ good }
	misstated  struct{ good }
	empty      struct{ good }
	excessive  struct{ good }
	foreign    struct{ good }
	untold     struct {
		good
		told string
	}
	unequal struct {
		good
		session int
	}
)

func (*nameless) Describe() sdk.Description { return sdk.Description{Name: "Not A Name"} }

func (*silent) Describe() sdk.Description { return newGood().Describe() }

// sleepless would sleep until nothing in particular.
func (*sleepless) Describe() sdk.Description {
	d := newGood().Describe()
	d.Wake = []sdk.Wake{{}}
	return d
}

// oversleeps would not be there when it is needed.
func (*oversleeps) Describe() sdk.Description {
	d := newGood().Describe()
	d.Wake = []sdk.Wake{{Object: "libnowhere.so*"}}
	return d
}

func (*misstated) Describe() sdk.Description {
	d := newGood().Describe()
	d.Options = []sdk.Option{{Name: "a", Description: "a", Type: sdk.IntegerOption, Default: "few"}}
	return d
}

// empty has a knob of which no value is allowed; excessive exceeds what it says.
func (*empty) Describe() sdk.Description {
	d := newGood().Describe()
	d.Knobs[0].Min, d.Knobs[0].Max = sdk.Int(5), sdk.Int(1)
	return d
}

func (*excessive) Describe() sdk.Description {
	d := newGood().Describe()
	d.Knobs[0].Max = sdk.Real(0.5)
	return d
}

// foreign has a knob, and changes something else by it.
func (*foreign) Describe() sdk.Description {
	d := newGood().Describe()
	d.Knobs[0].Action = sdk.SetVariable("*", "batch", 4, sdk.Value{})
	return d
}

// untold does its mischief only if it is configured.
func (*untold) Describe() sdk.Description {
	d := newGood().Describe()
	d.Options = []sdk.Option{{Name: "of", Type: sdk.TextOption}}
	return d
}

func (u *untold) Configure(options map[string]string) error {
	u.told = options["of"]
	return nil
}

func (u *untold) Tick(h *sdk.Host) {
	if u.told != "" {
		h.Remark(0, "told of %s", u.told)
	}
}

func (*panicky) ProcessEnded(_ *sdk.Host, e sdk.ProcessEnd) { _ = []int{}[e.Handle] }

func (*noisy) Tick(h *sdk.Host) { h.Remark(0, "tick") }

func (*forgetless) ProcessEnded(h *sdk.Host, e sdk.ProcessEnd) {
	h.Objective("s", 1)
	h.Propose(proposal(e.Handle))
}

func (*strange) ProcessStarted(h *sdk.Host, p sdk.Process) {
	w := proposal(p.Handle)
	w.Changes[0].Knob = "not described"
	h.Objective("s", 1)
	h.Propose(w)
}

func (*restless) Tick(h *sdk.Host) { h.AddPoint(sdk.Point{ID: "p", Hook: "malloc"}) }

func (*prying) Tick(h *sdk.Host) { h.AddPoint(sdk.Point{ID: "p", Symbols: []string{"fdatasync"}}) }

func (*seeking) Tick(h *sdk.Host) {
	h.AddPoint(sdk.Point{ID: "p", Symbols: []string{"lookup"}})
	h.AddPoint(sdk.Point{ID: "q", Object: "libindex.so*", Symbols: []string{"*"}})
}

// PointChanged hears that there is no such function, and says nothing.
func (*seeking) PointChanged(*sdk.Host, sdk.PointChange) {}

func (u *unequal) HandleSamples(h *sdk.Host, _ sdk.Samples) { h.Objective("s", float64(u.session)) }

func newUnequal() func() sdk.Tunlet {
	session := 0
	return func() sdk.Tunlet {
		session++
		return &unequal{*newGood().(*good), session}
	}
}

// recorder is a testing.TB that keeps what fails instead of failing.
type recorder struct {
	testing.TB

	mu       sync.Mutex // guards failures
	failures []string
}

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

// failing runs one check of the suite and returns what failed.
func failing(t *testing.T, name string, newTunlet func() sdk.Tunlet) string {
	t.Helper()
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, c := range checks() {
			if c.name == name {
				s := subject{
					serve:   func(tb TB) attunev1.TunletServiceClient { return serve(tb, newTunlet) },
					trouble: []func() *Process{Computing}, sure: true,
				}
				if _, takes := newTunlet().(sdk.Configurer); takes {
					s.options = map[string]string{"of": "the program"}
				}
				c.run(r, s)
				return
			}
		}
		r.Errorf("no check %q", name)
	}()
	<-done
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.failures, "\n")
}

func TestSuiteFindsWhatIsWrong(t *testing.T) {
	g := func() good { return *newGood().(*good) }
	for _, tt := range []struct {
		check     string
		newTunlet func() sdk.Tunlet
		want      string
	}{
		{"describes itself", func() sdk.Tunlet { return &nameless{g()} }, "objective name is missing"},
		{"describes itself", func() sdk.Tunlet { return &sleepless{g()} }, "leave Wake empty"},
		{"describes itself", func() sdk.Tunlet { return &misstated{g()} }, `"few" is not a whole number`},
		{"describes itself", func() sdk.Tunlet { return &empty{g()} }, "its least value is none: knob a.b: 5 is above the greatest allowed value 1"},
		{"names only what exists", func() sdk.Tunlet { return &excessive{g()} }, "knob a.b: 1 is above the greatest allowed value 0.5"},
		{"names only what exists", func() sdk.Tunlet { return &foreign{g()} }, "knob a.b is variable *:batch, and not what would set a.b=1"},
		{"is silent on a quiet program", func() sdk.Tunlet { return &untold{good: g()} }, "told of the program"},
		{"names only what exists", func() sdk.Tunlet { return &oversleeps{g()} }, "would not have been started yet"},
		{"survives any order of calls", func() sdk.Tunlet { return &panicky{g()} }, "panicked in ProcessEnded"},
		{"survives empty messages", func() sdk.Tunlet { return &noisy{g()} }, "remarked"},
		{"is silent on a quiet program", func() sdk.Tunlet { return &noisy{g()} }, "remarked"},
		{"is silent on a computing program", func() sdk.Tunlet { return &restless{g()} }, "asked for measure points"},
		{"is silent on a computing program", func() sdk.Tunlet { return &prying{g()} }, "asked for measure points"},
		{"names only what exists", func() sdk.Tunlet { return &forgetless{g()} }, "does not live"},
		{"names only what exists", func() sdk.Tunlet { return &strange{g()} }, "not described"},
		{"names only what exists", func() sdk.Tunlet { return &silent{} }, "not one proposal"},
		{"gives points back when processes end", func() sdk.Tunlet { return &restless{g()} }, "without processes"},
		{"does the same in every session", newUnequal(), "first session"},
	} {
		t.Run(tt.check+": "+tt.want, func(t *testing.T) {
			if got := failing(t, tt.check, tt.newTunlet); !strings.Contains(got, tt.want) {
				t.Errorf("the check says %q, want %q", got, tt.want)
			}
		})
	}
}

// TestSuiteLetsSeek: a tunlet of one program's function looks for it in whatever computes.
func TestSuiteLetsSeek(t *testing.T) {
	for _, check := range []string{"is silent on a quiet program", "is silent on a computing program"} {
		if got := failing(t, check, func() sdk.Tunlet { return &seeking{*newGood().(*good)} }); got != "" {
			t.Errorf("%s: %s", check, got)
		}
	}
}
