// SPDX-License-Identifier: Apache-2.0

package stdio_test

import (
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/catalogue"
	"github.com/attune-hpc/attune/tunlets/sdk"
	"github.com/attune-hpc/attune/tunlets/tunlettest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSuite(t *testing.T) {
	tunlettest.Suite(t, catalogue.New("stdio"), func() *tunlettest.Process { return lines(1.7e6, 35, 0.74e9) })
}

// lines is a program that makes so many writes a second, of so many bytes, with
// so much of a second in the kernel.
func lines(writes, bytes, system float64) *tunlettest.Process {
	p := tunlettest.Computing()
	p.Rates[sdk.WriteCalls], p.Rates[sdk.WrittenBytes] = writes, writes*bytes
	p.Rates[sdk.CPUSystem], p.Rates[sdk.RunTime] = system, 1e9
	return p
}

// calling makes a program call a function so often.
func calling(p *tunlettest.Process, function string, perSecond float64) *tunlettest.Process {
	p.Hits = func(point *attunev1.MeasurePoint) (float64, uint64) {
		if strings.Contains(point.GetId(), function) {
			return perSecond, 35
		}
		return 0, 0
	}
	return p
}

func TestProposes(t *testing.T) {
	for _, tt := range []struct {
		name    string
		process *tunlettest.Process
		gain    float64 // 0: none
	}{
		{"measured: lines of 35 bytes", lines(1.7e6, 35, 0.74e9), 10},
		{"measured: on a machine that others use", withRun(lines(840_000, 35, 0.142e9), 0.264e9), 3.3},
		{"small buffers of a fast filter", lines(300_000, 4096, 0.3e9), 1.4},
		{"few writes", lines(10_000, 35, 0.5e9), 0},
		{"writes that cost little", lines(60_000, 35, 0.04e9), 0},
		{"writes of its own size", lines(200_000, 16384, 0.8e9), 0},
		{"writes that it makes itself", calling(lines(1.7e6, 35, 0.74e9), "write", 1.7e6), 0},
		{"a few that would overtake lines", calling(lines(1.7e6, 35, 0.74e9), "writev", 20), 0},
		{"writes that it asks for", calling(lines(1.7e6, 35, 0.74e9), "flush", 1.7e6), 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := tunlettest.Start(t, catalogue.New("stdio"), nil, tt.process)
			h.Run(5 * time.Second)
			if (len(h.Proposals) == 1) != (tt.gain > 0) {
				t.Fatalf("proposals %v, want one: %v", h.Proposals, tt.gain > 0)
			}
			if tt.gain > 0 {
				checkProposal(t, h.Proposals[0], tt.gain)
			}
		})
	}
}

func withRun(p *tunlettest.Process, run float64) *tunlettest.Process {
	p.Rates[sdk.RunTime] = run
	return p
}

func checkProposal(t *testing.T, p tunlettest.Proposed, gain float64) {
	t.Helper()
	var got []string
	for _, c := range p.GetChanges() {
		got = append(got, c.GetKnob()+"="+attunev1.ValueText(c.GetAction().GetSetting().GetValue()))
	}
	if want := "glibc.stdio.mode=full glibc.stdio.size=65536"; strings.Join(got, " ") != want {
		t.Errorf("changes %v, want %s", got, want)
	}
	if g := p.GetPredictedGain(); g < gain*0.9 || g > gain*1.1 {
		t.Errorf("predicted gain %.2f, want %.2f", g, gain)
	}
	if p.At > 1500*time.Millisecond {
		t.Errorf("proposed after %v", p.At)
	}
}
