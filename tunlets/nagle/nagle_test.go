// SPDX-License-Identifier: Apache-2.0

package nagle_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/kit/connections/connectiontest"
	"github.com/attune-hpc/attune/tunlets/nagle"
	"github.com/attune-hpc/attune/tunlets/sdk"
	"github.com/attune-hpc/attune/tunlets/tunlettest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stalled is the measured case: write-write-read over the loopback, one exchange
// in 43 ms.
func stalled() *connectiontest.Connection {
	return &connectiontest.Connection{
		Sent: 46, Received: 23, Bytes: 46 * 60,
		TCP: sdk.TCPDetail{MinRTT: 25 * time.Microsecond, RTT: 20000 * time.Microsecond, WindowSegments: 10, SegmentBytes: 65483},
		Moment: func(n int, d *sdk.SocketDetail) {
			if n%14 != 0 { // held for 40 of 43 ms
				d.TCP.UnsentBytes, d.TCP.UnackedSegments = 60, 1
			}
		},
	}
}

func process() *tunlettest.Process { return stalled().Process(0.001, 0, 46) }

func TestSuite(t *testing.T) { tunlettest.Suite(t, nagle.New, process) }

func TestProposes(t *testing.T) {
	with := func(change func(*connectiontest.Connection)) func() *tunlettest.Process {
		return func() *tunlettest.Process {
			c := stalled()
			change(c)
			return c.Process(0.001, 0, 46)
		}
	}
	for _, tt := range []struct {
		name    string
		process func() *tunlettest.Process
		want    bool
	}{
		{"each exchange waits", process, true},
		{"TCP_NODELAY is set", with(func(c *connectiontest.Connection) { c.TCP.NoDelay = true }), false},
		{"the window is full", with(func(c *connectiontest.Connection) { c.TCP.WindowSegments = 1 }), false},
		{"a bulk transfer", with(func(c *connectiontest.Connection) {
			c.Moment = func(_ int, d *sdk.SocketDetail) { d.TCP.UnsentBytes, d.TCP.UnackedSegments = 1<<20, 4 }
		}), false},
		{"exchanges are fast", with(func(c *connectiontest.Connection) { c.Sent, c.Received = 20000, 10000 }), false},
		{"the path is as slow as the exchanges", with(func(c *connectiontest.Connection) { c.TCP.MinRTT = 43_000 * time.Microsecond }), false},
		{"nobody answers", with(func(c *connectiontest.Connection) { c.Received = 0 }), false},
		{"nothing is held", with(func(c *connectiontest.Connection) { c.Moment = nil }), false},
		{"it hardly ever sleeps", func() *tunlettest.Process { return stalled().Process(1, 0, 3) }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := tunlettest.Start(t, nagle.New, nil)
			p := h.StartProcess(tt.process())
			h.Run(10 * time.Second)
			if got := len(h.Proposals) == 1; got != tt.want {
				t.Fatalf("proposals %v, want one: %v", h.Proposals, tt.want)
			}
			if tt.want {
				checkProposal(t, h.Proposals[0], p)
			} else if share := reading(h, p, time.Minute); share > 0.25 {
				t.Errorf("its sockets are read %.0f %% of the time", 100*share)
			}
		})
	}
}

// TestShortConnections: what got through connections that have been closed does not count any
// more.
func TestShortConnections(t *testing.T) {
	c := stalled()
	c.Moment = func(n int, d *sdk.SocketDetail) { d.Inode += uint64(n / 10) }
	h := tunlettest.Start(t, nagle.New, nil, c.Process(0.001, 0, 46))
	h.Run(4 * time.Second)
	var sum float64
	for _, o := range h.Objectives[1:] { // the first connection is known from its second reading on
		sum += o.GetValue()
	}
	if mean := sum / float64(len(h.Objectives)-1); mean < 0.93*c.Bytes || mean > 1.07*c.Bytes {
		t.Errorf("%.0f B/s in %d values, want %.0f", mean, len(h.Objectives), c.Bytes)
	}
}

// reading is the part of the given time in which the tunlet has sockets read.
func reading(h *tunlettest.Harness, p *tunlettest.Process, d time.Duration) float64 {
	rounds := int(d / tunlettest.Period)
	n := 0
	for range rounds {
		h.Round()
		n += len(h.DetailsWanted(p))
	}
	return float64(n) / float64(rounds)
}

func checkProposal(t *testing.T, p tunlettest.Proposed, process *tunlettest.Process) {
	t.Helper()
	c := p.GetChanges()[0]
	system := c.GetAction().GetSystem()
	if len(p.GetChanges()) != 1 || c.GetProcess() != uint64(process.Handle) || c.GetKnob() != "socket.tcp_nodelay@7" ||
		system.GetOn() != connectiontest.FD || !system.GetValue().GetTruth() {
		t.Errorf("changes %v, want TCP_NODELAY of the connection", p.GetChanges())
	}
	if g := p.GetPredictedGain(); g < 400 || g > 1200 {
		t.Errorf("predicted gain %.0f; 660 was measured", g)
	}
	if p.At > 3*time.Second {
		t.Errorf("proposed after %v, want 3 s at most", p.At)
	}
}

// After a change was kept, a later connection under the same descriptor is
// another one; what is cured is left alone.
func TestLaterConnections(t *testing.T) {
	h := tunlettest.Start(t, nagle.New, nil)
	c := stalled()
	h.StartProcess(c.Process(0.001, 0, 46))
	h.Run(3 * time.Second)
	h.SetState(h.Proposals[0].GetId(), attunev1.ProposalState_PROPOSAL_STATE_KEPT, "")
	h.Run(10 * time.Second)
	if len(h.Proposals) != 1 {
		t.Fatalf("%d proposals, want none for a connection that was changed", len(h.Proposals)-1)
	}
	held := c.Moment
	c.Moment = func(n int, d *sdk.SocketDetail) { held(n, d); d.Inode++ }
	h.Run(20 * time.Second)
	if len(h.Proposals) != 2 || h.Proposals[1].GetChanges()[0].GetKnob() != "socket.tcp_nodelay@7#2" {
		t.Errorf("proposals %v, want a second one for the new connection", h.Proposals)
	}
}

// A connection that is closed while its change is judged has been changed all the same: the
// next one under its descriptor is another.
func TestClosedDuringTheTrial(t *testing.T) {
	h := tunlettest.Start(t, nagle.New, nil)
	c := stalled()
	h.StartProcess(c.Process(0.001, 0, 46))
	h.Run(3 * time.Second)
	held := c.Moment
	c.Moment = func(_ int, d *sdk.SocketDetail) { d.TCP.State = "close" }
	h.Run(1500 * time.Millisecond)
	h.SetState(h.Proposals[0].GetId(), attunev1.ProposalState_PROPOSAL_STATE_KEPT, "")
	c.Moment = func(n int, d *sdk.SocketDetail) { held(n, d); d.Inode++ }
	h.Run(20 * time.Second)
	if len(h.Proposals) != 2 || h.Proposals[1].GetChanges()[0].GetKnob() != "socket.tcp_nodelay@7#2" {
		t.Errorf("proposals %v, want a second one for the new connection", h.Proposals)
	}
}

// A change that was kept, and had to make room, is measured when it is tried again.
func TestMadeRoom(t *testing.T) {
	h := tunlettest.Start(t, nagle.New, nil, process())
	h.Run(3 * time.Second)
	id := h.Proposals[0].GetId()
	for _, state := range []attunev1.ProposalState{
		attunev1.ProposalState_PROPOSAL_STATE_KEPT, attunev1.ProposalState_PROPOSAL_STATE_UNDONE, attunev1.ProposalState_PROPOSAL_STATE_APPLYING,
	} {
		h.SetState(id, state, "")
		h.Objectives = nil
		h.Run(15 * time.Second)
	}
	if n := len(h.Objectives); n < 280 {
		t.Errorf("%d values of the objective in 15 s", n)
	}
}

// A connection that two processes have is changed once.
func TestSharedConnection(t *testing.T) {
	h := tunlettest.Start(t, nagle.New, nil, process(), process())
	elsewhere := process()
	elsewhere.Host = "node2" // another connection
	h.StartProcess(elsewhere)
	h.Run(10 * time.Second)
	if len(h.Proposals) != 2 {
		t.Errorf("%d proposals, want one for each host", len(h.Proposals))
	}
}

// What did not help is tried a limited number of times.
func TestGivesUp(t *testing.T) {
	h := tunlettest.Start(t, nagle.New, nil)
	p := h.StartProcess(process())
	for range 6 {
		n := len(h.Proposals)
		h.Run(20 * time.Second)
		if len(h.Proposals) > n {
			h.SetState(h.Proposals[n].GetId(), attunev1.ProposalState_PROPOSAL_STATE_UNDONE, "")
		}
	}
	if len(h.Proposals) != 3 {
		t.Errorf("%d proposals, want 3", len(h.Proposals))
	}
	before := h.Delivered
	h.Run(5 * time.Second)
	if len(h.DetailsWanted(p)) > 0 || h.Delivered != before {
		t.Error("looks at a process that it gave up")
	}
}
