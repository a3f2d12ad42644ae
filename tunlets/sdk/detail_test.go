// SPDX-License-Identifier: Apache-2.0

package sdk_test

import (
	"slices"
	"testing"
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

func TestCPUList(t *testing.T) {
	tests := []struct {
		list sdk.CPUList
		want []int
	}{
		{"", nil},
		{"0", []int{0}},
		{"0-3,8", []int{0, 1, 2, 3, 8}},
		{" 1, 3-4 ", []int{1, 3, 4}},
		{"2-1", nil},
		{"1,x,3", []int{1}},
		{"0-4294967295", nil},
		{"0-99999999999999999999", nil},
		{"-1", nil},
	}
	for _, tt := range tests {
		t.Run(string(tt.list), func(t *testing.T) {
			if got := slices.Collect(tt.list.Numbers()); !slices.Equal(got, tt.want) || tt.list.Count() != len(tt.want) {
				t.Errorf("%v, %d of them, want %v", got, tt.list.Count(), tt.want)
			}
		})
	}
	if list := sdk.CPUList("0-3,8"); !list.Has(8) || list.Has(4) {
		t.Error("0-3,8 has 8 and not 4")
	}
}

// detailed wants details of a process, and keeps the samples that it gets.
type detailed struct {
	bare
	kinds []sdk.Detail
	got   []sdk.Sample
}

func (d *detailed) ProcessStarted(h *sdk.Host, p sdk.Process) { h.WantDetails(p.Handle, d.kinds...) }
func (d *detailed) HandleSamples(_ *sdk.Host, s sdk.Samples)  { d.got = append(d.got, s.Items...) }

func TestDetailsAcrossTheWire(t *testing.T) {
	tunlet := &detailed{kinds: []sdk.Detail{sdk.DetailThreads, sdk.DetailSockets}}
	server := sdk.NewServer(func() sdk.Tunlet { return tunlet }, sdk.ServerOptions{})
	started, err := server.ProcessStarted(t.Context(), &attunev1.ProcessStartedRequest{Process: &attunev1.Process{Handle: 7}})
	if err != nil {
		t.Fatal(err)
	}
	if d := started.GetReaction().GetWants(); len(d) != 1 || d[0].GetProcess() != 7 || !slices.Equal(d[0].GetTables(), []uint32{1, 2}) {
		t.Errorf("reaction %v", d)
	}
	batch := &attunev1.SampleBatch{UnixNano: 1e9, Samples: []*attunev1.Sample{
		{Process: 7, Tables: (&sdk.Details{
			Threads: &sdk.ThreadDetails{Total: 3, Items: []sdk.ThreadDetail{thread(), {}}},
			Sockets: &sdk.SocketDetails{Items: []sdk.SocketDetail{
				{FD: 4, Kind: "tcp", TCP: &sdk.TCPDetail{NoDelay: true, RTT: 40 * time.Millisecond, LastSent: 3 * time.Millisecond}},
				{FD: 5, Kind: "unix"},
			}},
			Memory: &sdk.MemoryDetails{Error: "not allowed"},
		}).Tables()},
		{Process: 8},
	}}
	if _, err := server.HandleEvents(t.Context(), &attunev1.HandleEventsRequest{Samples: batch}); err != nil {
		t.Fatal(err)
	}
	checkDetails(t, tunlet.got[0].Details)
	if d := tunlet.got[1].Details; d.Threads != nil || d.Sockets != nil || d.Memory != nil {
		t.Errorf("details of a process without: %+v", d)
	}
}

func thread() sdk.ThreadDetail {
	return sdk.ThreadDetail{TID: 8, StartTicks: 5, Name: "worker", State: "R", Run: time.Second, LastCPU: 1, CPUsAllowed: "0-1"}
}

func checkDetails(t *testing.T, d sdk.Details) {
	t.Helper()
	if d.Threads == nil || d.Threads.Total != 3 || d.Threads.Items[0] != thread() {
		t.Errorf("threads %+v", d.Threads)
	}
	if s := d.Sockets; s == nil || s.Items[0].Kind != "tcp" || s.Items[1].Kind != "unix" || s.Items[1].TCP != nil ||
		*s.Items[0].TCP != (sdk.TCPDetail{NoDelay: true, RTT: 40 * time.Millisecond, LastSent: 3 * time.Millisecond}) {
		t.Errorf("sockets %+v", s)
	}
	if d.Pipes != nil || d.Memory == nil || d.Memory.Error == "" {
		t.Errorf("pipes %+v, memory %+v", d.Pipes, d.Memory)
	}
}
