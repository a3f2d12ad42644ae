// SPDX-License-Identifier: Apache-2.0

package declarative_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/declarative"
	"github.com/attune-hpc/attune/tunlets/sdk"
	"github.com/attune-hpc/attune/tunlets/tunlettest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lists watches a function, and changes two things when it is called a lot.
const lists = `attune: tunlet/1
name: lists
version: "1"
summary: for tests
options:
  - {name: size, type: bytes, default: 1MiB, description: a size}
  - {name: calm, type: duration, default: 250ms, description: a time}
wake:
  - {object: "libpython*", levels: {cpu_user: 5e8}}
points:
  - {id: lists, function: PyList_New, object: "libpython*"}
symptom: rate.cpu_user > 5e8 && process.executable.startsWith("python")
confirm: point.lists.rate > 1000.0 && point.lists.mean > 3.0
objective:
  name: lists_per_second
  unit: 1/s
  description: lists made
  value: point.lists.rate
gain: 1.0 + option.calm
reason: makes ${point.lists.rate} lists/s of ${point.lists.mean}, as ${process.executable} on ${process.cpus} CPUs, ${rate.major_faults} faults
change:
  - {setting: python.gc.threshold0, to: option.size, description: a threshold}
  - variable: {object: "libpython*", symbol: _Py_quick, size: 1}
    to: "true"
    description: a switch
`

func newLists(t *testing.T) func() sdk.Tunlet {
	t.Helper()
	d, err := declarative.Parse([]byte(lists))
	if err != nil {
		t.Fatal(err)
	}
	return d.New
}

// python makes many lists.
func python() *tunlettest.Process {
	p := tunlettest.Computing()
	p.Executable = "/usr/bin/python3.11"
	p.Objects = []string{"/usr/lib/libpython3.11.so.1.0"}
	p.Hits = func(*attunev1.MeasurePoint) (float64, uint64) { return 20_000, 8 }
	return p
}

func TestSuite(t *testing.T) { tunlettest.Suite(t, newLists(t), python) }

// Whoever asks is told what each expression gives and by which values, when it gives
// something else and once a second; nobody else is.
func TestExplains(t *testing.T) {
	for _, explain := range []bool{false, true} {
		h := tunlettest.New(t, newLists(t))
		h.Explain = explain
		h.StartSession()
		p := python()
		p.Hits = func(*attunev1.MeasurePoint) (float64, uint64) { return 900, 8 }
		h.StartProcess(p)
		h.Run(3 * time.Second)
		said := map[string]int{}
		for _, r := range h.Explanations {
			said[r.GetText()]++
		}
		const never = `confirm is false: point.lists.rate > 1000.0 && point.lists.mean > 3.0; point.lists.mean = 8, point.lists.rate = 900`
		if n := said[never]; explain && (n < 1 || n > 3) || !explain && len(said) > 0 {
			t.Errorf("explain %v: said %v", explain, said)
		}
	}
}

func session(t *testing.T) *tunlettest.Harness {
	t.Helper()
	h := tunlettest.Start(t, newLists(t), nil)
	return h
}

func TestConfirmedByPoints(t *testing.T) {
	h := session(t)
	p := h.StartProcess(python())
	h.Run(time.Second)
	if len(h.Proposals) != 1 {
		t.Fatalf("proposals %v, want one", h.Proposals)
	}
	got := h.Proposals[0]
	if want := "makes 20000 lists/s of 8, as python3.11 on 2 CPUs, ? faults"; got.GetReason() != want {
		t.Errorf("reason %q, want %q", got.GetReason(), want)
	}
	if got.GetPredictedGain() != 1.25 || got.GetConfidence() != 0.5 || len(got.GetChanges()) != 2 {
		t.Errorf("proposal %v, want a gain of 1.25 by two changes", got)
	}
	setting, variable := got.GetChanges()[0], got.GetChanges()[1]
	if setting.GetKnob() != "python.gc.threshold0" || setting.GetAction().GetSetting().GetValue().GetUnsigned() != 1<<20 {
		t.Errorf("change %v, want python.gc.threshold0 = 1 MiB", setting)
	}
	if v := variable.GetAction().GetSetVariable(); variable.GetKnob() != "_Py_quick" || v.GetSize() != 1 || !v.GetValue().GetTruth() {
		t.Errorf("change %v, want _Py_quick = true", variable)
	}
	if len(h.Points()) != 1 {
		t.Errorf("points %v, want one until the verdict", h.Points())
	}
	h.SetState(got.GetId(), attunev1.ProposalState_PROPOSAL_STATE_KEPT, "")
	h.Run(10 * time.Second)
	if len(h.Points()) > 0 || len(h.Proposals) > 1 {
		t.Errorf("after the verdict: points %v, %d proposals", h.Points(), len(h.Proposals))
	}
	h.EndProcess(p)
}

func TestNotConfirmed(t *testing.T) {
	h := session(t)
	p := python()
	p.Hits = nil
	h.StartProcess(p)
	rounds, watched := 0, 0
	for h.Elapsed() < 40*time.Second {
		h.Round()
		rounds++
		if len(h.Points()) > 0 {
			watched++
		}
	}
	if len(h.Proposals) > 0 || watched == 0 || watched > rounds/6 {
		t.Errorf("%d proposals; points in place in %d of %d rounds, want some, and a sixth at most", len(h.Proposals), watched, rounds)
	}
}

func TestRefusedPoint(t *testing.T) {
	h := session(t)
	h.Refuse = func(*attunev1.MeasurePoint, *tunlettest.Process) string { return "stripped" }
	h.StartProcess(python())
	h.Run(10 * time.Second)
	if len(h.Proposals) > 0 || len(h.Points()) > 0 {
		t.Errorf("proposals %v, points %v, want none", h.Proposals, h.Points())
	}
	if len(h.Remarks) != 1 || !strings.Contains(h.Remarks[0].GetText(), "lists cannot be watched: stripped") {
		t.Errorf("remarks %v, want one with the reason", h.Remarks)
	}
}

func TestTriesAgain(t *testing.T) {
	h := session(t)
	h.StartProcess(python())
	for range 2000 {
		h.Round()
		if n := len(h.Proposals); n > 0 {
			h.SetState(h.Proposals[n-1].GetId(), attunev1.ProposalState_PROPOSAL_STATE_UNDONE, "slower")
		}
	}
	if len(h.Proposals) != 3 {
		t.Fatalf("%d proposals, want three", len(h.Proposals))
	}
	if pause := h.Proposals[1].At - h.Proposals[0].At; pause < sdk.RetryPause {
		t.Errorf("tried again after %v, want %v at least", pause, sdk.RetryPause)
	}
}

func TestSleepsWhereItIsOfNoUse(t *testing.T) {
	below := python()
	below.Rates[sdk.CPUUser] = 1e8
	for _, tt := range []struct {
		name    string
		process *tunlettest.Process
	}{{"without the object", tunlettest.Computing()}, {"below the level", below}} {
		t.Run(tt.name, func(t *testing.T) {
			h := session(t)
			h.StartProcess(tt.process)
			h.Run(5 * time.Second)
			if h.Delivered > 0 {
				t.Errorf("woken %d times", h.Delivered)
			}
		})
	}
}

func TestOptions(t *testing.T) {
	h := tunlettest.Start(t, newLists(t), map[string]string{"size": "64KiB"}, python())
	h.Run(time.Second)
	if len(h.Proposals) != 1 || h.Proposals[0].GetChanges()[0].GetAction().GetSetting().GetValue().GetUnsigned() != 64<<10 {
		t.Errorf("proposals %v, want 64 KiB", h.Proposals)
	}
}

// Values that may be negative are summed up as such: what read returns is -1 on an error.
func TestNegativeValues(t *testing.T) {
	text := strings.NewReplacer(
		`function: PyList_New, object: "libpython*"`, `probe: "libc.so.6:read%return sum ret"`,
		"> 3.0", "< 0.0",
	).Replace(lists)
	h := tunlettest.Start(t, newTunlet(t, text), nil)
	p := python()
	p.Hits = func(*attunev1.MeasurePoint) (float64, uint64) { return 20_000, 1<<64 - 1 }
	h.StartProcess(p)
	h.Run(time.Second)
	if len(h.Proposals) != 1 || !strings.HasPrefix(h.Proposals[0].GetReason(), "makes 20000 lists/s of -1,") {
		t.Errorf("proposals %v, want one with a mean of -1", h.Proposals)
	}
}

// What is computed for an integer variable may turn out to be no whole number: it is told, and
// not cut off.
func TestFractionForAnInteger(t *testing.T) {
	for to, want := range map[string]int{"point.lists.mean / 7.0": 0, "int(point.lists.mean / 7.0)": 1} {
		h := tunlettest.Start(t, newTunlet(t, strings.Replace(lists, `to: "true"`, "to: "+to, 1)), nil, python())
		h.Run(time.Second)
		said := slices.ContainsFunc(h.Remarks, func(m *attunev1.Remark) bool {
			return strings.Contains(m.GetText(), "the value for variable _Py_quick is no whole number")
		})
		if len(h.Proposals) != want || said != (want == 0) {
			t.Errorf("to %s: proposals %v, remarks %v", to, h.Proposals, h.Remarks)
		}
	}
}

// A symptom may have to last longer than as many samples as are kept.
func TestLongSymptom(t *testing.T) {
	h := tunlettest.Start(t, newTunlet(t, strings.Replace(lists, "symptom:", "lasting: 20s\nsymptom:", 1)), nil, python())
	h.Run(40 * time.Second)
	if len(h.Proposals) != 1 || h.Proposals[0].At < 18*time.Second {
		t.Errorf("proposals %v, want one after 20 s", h.Proposals)
	}
}
