// SPDX-License-Identifier: Apache-2.0

package pipe_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/attune-hpc/attune/tunlets/catalogue"
	"github.com/attune-hpc/attune/tunlets/sdk"
	"github.com/attune-hpc/attune/tunlets/tunlettest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSuite(t *testing.T) {
	writing := func() *tunlettest.Process { return writer(1.49e9, 23_000) }
	reading := func() *tunlettest.Process { return reader(1.49e9, 23_000) }
	tunlettest.Suite(t, catalogue.New("pipe"), writing, reading)
}

// writer is the measured case: 1,490 MB/s in turns of 64 KiB.
func writer(bytes, switches float64) *tunlettest.Process {
	return flow(sdk.WrittenBytes, sdk.WriteCalls, bytes, switches)
}

func reader(bytes, switches float64) *tunlettest.Process {
	return flow(sdk.ReadBytes, sdk.ReadCalls, bytes, switches)
}

func flow(moved, calls sdk.Signal, bytes, switches float64) *tunlettest.Process {
	p := tunlettest.Computing()
	p.Rates[moved], p.Rates[calls] = bytes, bytes/(1<<20)
	p.Rates[sdk.VoluntarySwitches] = switches
	return p
}

func TestProposes(t *testing.T) {
	for _, tt := range []struct {
		name           string
		writer, reader *tunlettest.Process
		want           bool
	}{
		{"both sleep in turns", writer(1.49e9, 23_000), reader(1.49e9, 23_000), true},
		{"the reader is what all wait for (md5sum)", writer(6e8, 9_000), reader(6e8, 5), false},
		{"the writer is what all wait for", writer(6e8, 5), reader(6e8, 9_000), false},
		{"little is written", writer(1.7e8, 2_600), reader(1.7e8, 2_600), false},
		{"nobody is known to read", writer(1.49e9, 23_000), tunlettest.Computing(), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := tunlettest.Start(t, catalogue.New("pipe"), nil)
			w := h.StartProcess(tt.writer)
			h.StartProcess(tt.reader)
			h.Run(5 * time.Second)
			if got := len(h.Proposals) > 0; got != tt.want {
				t.Fatalf("proposals %v, want some: %v", h.Proposals, tt.want)
			}
			if tt.want {
				checkProposal(t, h.Proposals, w)
			}
		})
	}
}

func checkProposal(t *testing.T, proposals []tunlettest.Proposed, w *tunlettest.Process) {
	t.Helper()
	if len(proposals) != 1 || len(proposals[0].GetChanges()) != 1 {
		t.Fatalf("proposals %v, want one change", proposals)
	}
	p, c := proposals[0], proposals[0].GetChanges()[0]
	if c.GetProcess() != uint64(w.Handle) || c.GetKnob() != "pipe.size" || c.GetAction().GetSystem().GetValue().GetUnsigned() != 1<<20 {
		t.Errorf("change %v, want pipe.size = 1 MiB in the writer", c)
	}
	if g := p.GetPredictedGain(); g < 2.4 || g > 2.8 {
		t.Errorf("predicted gain %.2f, want about 2.6 (2.9 was measured)", g)
	}
	if p.At > time.Second {
		t.Errorf("proposed after %v, want a second at most", p.At)
	}
}
