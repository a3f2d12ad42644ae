// SPDX-License-Identifier: Apache-2.0

package aggregation_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/aggregation"
	"github.com/attune-hpc/attune/tunlets/sdk"
	"github.com/attune-hpc/attune/tunlets/tunlettest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSuite(t *testing.T) {
	tunlettest.SuiteWith(t, map[string]string{"variable": "n"}, aggregation.New, func() *tunlettest.Process { return sender(600_000, 0.85) })
}

// What the tags of the options say is what the description of the knob says.
func TestOptionsAreThoseOfTheKnob(t *testing.T) {
	description := aggregation.New().Describe()
	given := map[string]sdk.Option{}
	for _, o := range description.Options {
		given[o.Name] = o
	}
	if most := description.Knobs[0].Max.String(); given["present"].Max != most || given["most"].Max != most {
		t.Errorf("%+v, want a maximum of %s", given, most)
	}
}

// sender is a program that sends items of 16 bytes one by one, so many a second,
// with so much of its time in the kernel.
func sender(messages, system float64) *tunlettest.Process {
	p := tunlettest.Computing()
	p.Executable, p.Objects = "/usr/bin/sender", []string{"/usr/lib/libitems.so"}
	p.Rates[sdk.WriteCalls], p.Rates[sdk.WrittenBytes] = messages, 16*messages
	p.Rates[sdk.CPUSystem], p.Rates[sdk.RunTime] = system*1e9, 1e9
	return p
}

func TestProposes(t *testing.T) {
	named := func(more ...string) map[string]string {
		options := map[string]string{"variable": "items_per_message"}
		for i := 0; i < len(more); i += 2 {
			options[more[i]] = more[i+1]
		}
		return options
	}
	for _, tt := range []struct {
		name    string
		options map[string]string
		process *tunlettest.Process
		items   int64 // 0: none proposed
		gain    float64
	}{
		{"sends take most of the time", named(), sender(600_000, 0.85), 4, 2.76},
		{"measured: 196,000 messages/s over TCP", named(), sender(196_000, 0.85), 4, 2.76},
		{"messages are waited for", named("latency", "50us"), sender(196_000, 0.85), 12, 4.53},
		{"no more than the program bears", named("latency", "50us", "most", "8"), sender(196_000, 0.85), 8, 3.91},
		{"half of the time", named(), sender(300_000, 0.5), 2, 1.33},
		{"sends cost little", named(), sender(100_000, 0.1), 0, 0},
		{"few messages", named(), sender(10_000, 0.9), 0, 0},
		{"that many already", named("present", "4"), sender(200_000, 0.5), 0, 0},
		{"the program is named", named("object", "send*"), sender(600_000, 0.85), 4, 2.76},
		{"a library is named", named("object", "libitems.so"), sender(600_000, 0.85), 4, 2.76},
		{"another program is named", named("object", "receiver"), sender(600_000, 0.85), 0, 0},
		{"the program is not described", nil, sender(600_000, 0.85), 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := tunlettest.Start(t, aggregation.New, tt.options, tt.process)
			h.Run(5 * time.Second)
			if (len(h.Proposals) == 1) != (tt.items > 0) {
				t.Fatalf("proposals %v, want one: %v", h.Proposals, tt.items > 0)
			}
			if tt.items == 0 {
				return
			}
			p := h.Proposals[0]
			v := p.GetChanges()[0].GetAction().GetSetVariable()
			if v.GetSymbol() != "items_per_message" || v.GetValue().GetInteger() != tt.items || v.GetRequiredOld().GetInteger() != 1 {
				t.Errorf("change %v, want items_per_message 1 -> %d", v, tt.items)
			}
			if g := p.GetPredictedGain(); g < tt.gain*0.99 || g > tt.gain*1.01 {
				t.Errorf("predicted gain %.2f, want %.2f", g, tt.gain)
			}
		})
	}
}

func TestObjectiveIsWhatIsWritten(t *testing.T) {
	h := tunlettest.Start(t, aggregation.New, map[string]string{"variable": "n"}, sender(600_000, 0.85))
	h.Run(time.Second)
	if len(h.Objectives) < 5 {
		t.Fatalf("%d values of the objective, want 5 at least", len(h.Objectives))
	}
	for _, o := range h.Objectives {
		if o.GetScope() != h.Proposals[0].GetScope() || o.GetValue() < 0.9*9.6e6 || o.GetValue() > 1.1*9.6e6 {
			t.Errorf("objective %v, want 9.6 MB/s in scope %q", o, h.Proposals[0].GetScope())
		}
	}
}

func TestEnds(t *testing.T) {
	for _, tt := range []struct {
		state     attunev1.ProposalState
		proposals int
	}{
		{attunev1.ProposalState_PROPOSAL_STATE_KEPT, 1},
		{attunev1.ProposalState_PROPOSAL_STATE_UNDONE, 2},
		{attunev1.ProposalState_PROPOSAL_STATE_FAILED, 2},
	} {
		t.Run(tt.state.String(), func(t *testing.T) {
			h := tunlettest.Start(t, aggregation.New, map[string]string{"variable": "n"}, sender(600_000, 0.85))
			for range 5 {
				h.Run(13 * time.Second)
				for _, p := range h.Proposals {
					h.SetState(p.GetId(), tt.state, "")
				}
			}
			if len(h.Proposals) != tt.proposals {
				t.Errorf("%d proposals, want %d", len(h.Proposals), tt.proposals)
			}
		})
	}
}

func TestOptionsThatCannotBe(t *testing.T) {
	for _, options := range []map[string]string{
		{"variable": "n", "unknown": "1"},
		{"variable": "n", "size": "1", "most": "300"},
		{"variable": "n", "latency": "soon"},
	} {
		tunlet := aggregation.New()
		settled, err := sdk.SettleOptions(tunlet.Describe().Options, options)
		if err == nil {
			err = tunlet.(sdk.Configurer).Configure(settled)
		}
		if err == nil {
			t.Errorf("options %v are taken", options)
		}
	}
}
