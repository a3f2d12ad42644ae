// SPDX-License-Identifier: Apache-2.0

package congestion_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/attune-hpc/attune/tunlets/congestion"
	"github.com/attune-hpc/attune/tunlets/kit/connections/connectiontest"
	"github.com/attune-hpc/attune/tunlets/sdk"
	"github.com/attune-hpc/attune/tunlets/tunlettest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// paced is the measured case: iperf3 over the loopback with BBR, 2.1 GB/s, and
// 3.0 GB/s with CUBIC.
func paced() *connectiontest.Connection {
	return &connectiontest.Connection{
		Sent: 32000, Bytes: 2.1e9, BusyShare: 0.99, ResentShare: 3e-5,
		TCP: sdk.TCPDetail{RTT: 70 * time.Microsecond, MinRTT: 3 * time.Microsecond, WindowSegments: 16, SegmentBytes: 65483, Congestion: "bbr"},
	}
}

func process() *tunlettest.Process { return paced().Process(0.65, 0.28, 377) }

func TestSuite(t *testing.T) { tunlettest.Suite(t, congestion.New, process) }

func TestProposes(t *testing.T) {
	with := func(change func(*connectiontest.Connection)) func() *tunlettest.Process {
		return func() *tunlettest.Process {
			c := paced()
			change(c)
			return c.Process(0.65, 0.28, 377)
		}
	}
	for _, tt := range []struct {
		name    string
		process func() *tunlettest.Process
		want    bool
	}{
		{"paced on a short path", process, true},
		{"not paced", with(func(c *connectiontest.Connection) { c.TCP.Congestion = "cubic" }), false},
		{"a long path", with(func(c *connectiontest.Connection) { c.TCP.MinRTT = 20000 * time.Microsecond }), false},
		{"losses", with(func(c *connectiontest.Connection) { c.ResentShare = 0.01 }), false},
		{"no bulk", with(func(c *connectiontest.Connection) { c.Bytes = 1e7 }), false},
		{"nothing to send most of the time", with(func(c *connectiontest.Connection) { c.BusyShare = 0.3 }), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := tunlettest.Start(t, congestion.New, nil, tt.process())
			h.Run(10 * time.Second)
			if got := len(h.Proposals) == 1; got != tt.want {
				t.Fatalf("proposals %v, want one: %v", h.Proposals, tt.want)
			}
			if !tt.want {
				return
			}
			system := h.Proposals[0].GetChanges()[0].GetAction().GetSystem()
			if system.GetName() != "socket.tcp_congestion" || system.GetOn() != connectiontest.FD || system.GetValue().GetText() != "cubic" {
				t.Errorf("changes %v, want cubic for the connection", h.Proposals[0].GetChanges())
			}
		})
	}
}
