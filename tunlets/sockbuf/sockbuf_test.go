// SPDX-License-Identifier: Apache-2.0

package sockbuf_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/attune-hpc/attune/tunlets/kit/connections/connectiontest"
	"github.com/attune-hpc/attune/tunlets/sdk"
	"github.com/attune-hpc/attune/tunlets/sockbuf"
	"github.com/attune-hpc/attune/tunlets/tunlettest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// limited is the measured case: socat with sndbuf=16384 over the loopback,
// 230 MB/s, 3.3 times as much with the kernel's own size.
func limited() *connectiontest.Connection {
	return &connectiontest.Connection{
		Sent: 3500, Bytes: 230e6, BusyShare: 0.9,
		Socket: sdk.SocketDetail{SendBufferBytes: 32768, SendQueuedBytes: 66315, SendBufferSet: true},
		TCP:    sdk.TCPDetail{RTT: 84 * time.Microsecond, MinRTT: 3 * time.Microsecond, WindowSegments: 12, SegmentBytes: 65483, UnackedSegments: 1},
	}
}

func process() *tunlettest.Process { return limited().Process(0.07, 0.05, 3289) }

func TestSuite(t *testing.T) { tunlettest.Suite(t, sockbuf.New, process) }

func TestProposes(t *testing.T) {
	with := func(change func(*connectiontest.Connection)) func() *tunlettest.Process {
		return func() *tunlettest.Process {
			c := limited()
			change(c)
			return c.Process(0.07, 0.05, 3289)
		}
	}
	for _, tt := range []struct {
		name    string
		process func() *tunlettest.Process
		want    bool
	}{
		{"the buffer holds it up", process, true},
		{"the kernel tunes the size", with(func(c *connectiontest.Connection) { c.Socket.SendBufferSet = false }), false},
		{"the buffer has room", with(func(c *connectiontest.Connection) { c.Socket.SendQueuedBytes = 9000 }), false},
		{"the network holds it up", with(func(c *connectiontest.Connection) { c.TCP.UnsentBytes = 1 << 20 }), false},
		{"the congestion window holds it up", with(func(c *connectiontest.Connection) { c.TCP.WindowSegments = 1 }), false},
		{"the peer holds it up", with(func(c *connectiontest.Connection) { c.PeerLimitedShare = 0.9 }), false},
		{"the path carries no more", with(func(c *connectiontest.Connection) { c.TCP.MinRTT = 3400 * time.Microsecond }), false},
		{"hardly anything is sent", with(func(c *connectiontest.Connection) { c.Bytes = 1e4 }), false},
		{"the sender has no time to spare", func() *tunlettest.Process { return limited().Process(0.9, 0.05, 3289) }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := tunlettest.Start(t, sockbuf.New, nil)
			p := h.StartProcess(tt.process())
			h.Run(10 * time.Second)
			if got := len(h.Proposals) == 1; got != tt.want {
				t.Fatalf("proposals %v, want one: %v", h.Proposals, tt.want)
			}
			if tt.want {
				checkProposal(t, h.Proposals[0], p)
			}
		})
	}
}

func checkProposal(t *testing.T, p tunlettest.Proposed, process *tunlettest.Process) {
	t.Helper()
	c := p.GetChanges()[0]
	system := c.GetAction().GetSystem()
	if len(p.GetChanges()) != 1 || c.GetProcess() != uint64(process.Handle) || system.GetName() != "socket.so_sndbuf" ||
		system.GetOn() != connectiontest.FD || system.GetValue().GetText() != "auto" {
		t.Errorf("changes %v, want the kernel's own size of the connection", p.GetChanges())
	}
	if g := p.GetPredictedGain(); g < 2 || g > 10 {
		t.Errorf("predicted gain %.1f; 3.3 was measured", g)
	}
}
