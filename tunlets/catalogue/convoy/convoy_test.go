// SPDX-License-Identifier: Apache-2.0

package convoy_test

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
	tunlettest.Suite(t, catalogue.New("convoy"), func() *tunlettest.Process { return server(measured()) })
}

// load is what the two threads of a server do.
type load struct {
	first, second float64 // part of the time that they run
	switches      float64 // of the second one per second
	bytes         float64 // from the network per second
}

// measured is a thread that computes, and one that sleeps most of the time although
// it is asked more than it answers.
func measured() load { return load{first: 0.9, second: 0.1, switches: 400, bytes: 200_000} }

func server(l load) *tunlettest.Process {
	p := tunlettest.Computing()
	p.Executable = "/usr/bin/python3.11"
	p.Objects = []string{"/usr/bin/python3.11", "/usr/lib/x86_64-linux-gnu/libc.so.6"}
	p.Rates[sdk.RunTime], p.Rates[sdk.RunqueueWait] = (l.first+l.second)*1e9, 0
	p.Rates[sdk.VoluntarySwitches] = l.switches + 10
	p.Gauges[sdk.Threads] = 2
	p.Details = func(age time.Duration) *sdk.Details {
		counter := func(perSecond float64) uint64 { return uint64(age.Seconds() * perSecond) }
		return &sdk.Details{
			Threads: &sdk.ThreadDetails{Total: 2, Items: []sdk.ThreadDetail{
				{TID: 1, StartTicks: 7, Run: time.Duration(counter(l.first * 1e9)), VoluntarySwitches: counter(10)},
				{TID: 2, StartTicks: 8, Run: time.Duration(counter(l.second * 1e9)), VoluntarySwitches: counter(l.switches)},
			}},
			Sockets: &sdk.SocketDetails{Total: 1, Items: []sdk.SocketDetail{{
				FD: 4, Inode: 99, Kind: "tcp", TCP: &sdk.TCPDetail{
					State: "established", ReceivedBytes: counter(l.bytes), AckedBytes: counter(l.bytes),
				},
			}}},
		}
	}
	return p
}

func TestProposes(t *testing.T) {
	for _, tt := range []struct {
		name string
		load load
		want bool
	}{
		{"one computes, one answers", measured(), true},
		{"both compute", load{first: 0.5, second: 0.55, switches: 200, bytes: 200_000}, false},
		{"nobody asks", load{first: 0.9, second: 0.1, switches: 400}, false},
		{"little happens", load{first: 0.1, second: 0.1, switches: 400, bytes: 200_000}, false},
		{"the lock is not shared", load{first: 1, second: 0.6, switches: 400, bytes: 200_000}, false},
		{"the second one hardly sleeps", load{first: 0.9, second: 0.1, switches: 20, bytes: 200_000}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := tunlettest.Start(t, catalogue.New("convoy"), nil, server(tt.load))
			h.Run(5 * time.Second)
			if (len(h.Proposals) == 1) != tt.want {
				t.Fatalf("proposals %v, want one: %v", h.Proposals, tt.want)
			}
			if tt.want {
				checkProposal(t, h.Proposals[0])
			}
		})
	}
}

func checkProposal(t *testing.T, p tunlettest.Proposed) {
	t.Helper()
	c := p.GetChanges()[0]
	if len(p.GetChanges()) != 1 || c.GetKnob() != "python.switch_interval_us" || c.GetAction().GetSetting().GetValue().GetUnsigned() != 200 {
		t.Errorf("changes %v, want python.switch_interval_us = 200", p.GetChanges())
	}
	if g := p.GetPredictedGain(); g < 4.5 || g > 5.5 {
		t.Errorf("predicted gain %.2f, want 5", g)
	}
}
