// SPDX-License-Identifier: Apache-2.0

package fold

import (
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/proto/attune/series"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestTaken: without an account of the command, that of the samples stands in: the memory
// of all at one time, the sums of those that have ended too, and nothing without samples.
func TestTaken(t *testing.T) {
	a := NewAccount()
	a.Take(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Header{Header: &attunev1.RecordingHeader{StartUnixNano: 1e18}}})
	for pid := range int32(2) {
		a.Take(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Process{Process: &attunev1.RecordedProcess{Process: &attunev1.Process{
			Handle: uint64(pid) + 1, Identity: &attunev1.ProcessIdentity{Pid: pid + 7}, Executable: "/bin/solver",
		}}}})
	}
	if got := a.Report(time.Second).Account; got != nil {
		t.Errorf("without samples: %+v", got)
	}
	sample := func(handle, run, resident uint64) {
		a.Take(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Samples{Samples: &attunev1.SampleBatch{Samples: []*attunev1.Sample{{
			Process: handle, Tables: []*attunev1.Table{series.SignalTable(series.Reading{ID: series.RunTime, Value: run}, series.Reading{ID: series.ResidentBytes, Value: resident})},
		}}}}})
	}
	sample(1, 5e9, 100)
	sample(2, 0, 200)
	sample(1, 6e9, 50)
	a.Take(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_ProcessGone{ProcessGone: &attunev1.RecordedProcessEnd{
		Ended: &attunev1.ProcessEnded{Process: 1}, EndedNanos: 1e9,
	}}})
	sample(2, 3e9, 260)
	got := a.Report(4 * time.Second).Account
	if got == nil || *got.CPUSeconds != 4 || *got.CoresAverage != 1 || *got.Memory.Resident != 300 || *got.Processes.Total != 2 || *got.Processes.Left != 1 {
		t.Fatalf("%+v", got)
	}
	if got.Accuracy["cpu_seconds"] != account.Bound || got.IO.Read != nil || got.Exit.Type != account.ExitLost {
		t.Errorf("%+v", got)
	}
	if p := got.Tree[0]; p.PID != 7 || *p.CPUSeconds != 1 || *p.Memory.Resident != 100 || p.WallSeconds != 1 || p.Left {
		t.Errorf("%+v", p)
	}
	a.Take(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Exit{Exit: &attunev1.RecordedExit{Account: []byte(`{"wall_seconds": 77}`)}}})
	if got := a.Report(4 * time.Second).Account; got.WallSeconds != 77 {
		t.Errorf("the account of the command is not in the report: %+v", got)
	}
}

// TestTakenOver: a process that another controller takes over, as after a restart of attuned, and
// one that executes another program, are one process each, with all that they took.
func TestTakenOver(t *testing.T) {
	a := NewAccount()
	a.Take(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Header{Header: &attunev1.RecordingHeader{StartUnixNano: 1e18}}})
	for handle := range uint64(2) {
		a.Take(&attunev1.RecordingFrame{AtNanos: int64(handle) * 2e9, What: &attunev1.RecordingFrame_Process{Process: &attunev1.RecordedProcess{Process: &attunev1.Process{
			Handle: handle + 1, Host: "node1", Identity: &attunev1.ProcessIdentity{Pid: 7, StartTicks: 100}, Executable: "/bin/solver",
		}}}})
		for _, run := range []uint64{5e9, 6e9} {
			a.Take(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Samples{Samples: &attunev1.SampleBatch{Samples: []*attunev1.Sample{{
				Process: handle + 1, Tables: []*attunev1.Table{series.SignalTable(series.Reading{ID: series.RunTime, Value: run}, series.Reading{ID: series.ResidentBytes, Value: 100 * (handle + 1)})},
			}}}}})
		}
		if handle == 0 {
			a.Take(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_ProcessGone{ProcessGone: &attunev1.RecordedProcessEnd{
				Ended: &attunev1.ProcessEnded{Process: 1}, EndedNanos: 1e9,
			}}})
		}
	}
	got := a.Report(4 * time.Second).Account
	if got == nil || *got.Processes.Total != 1 || *got.Processes.Left != 1 || len(got.Tree) != 1 || a.Summary().Processes != 1 {
		t.Fatalf("%+v", got)
	}
	if p := got.Tree[0]; *p.CPUSeconds != 2 || *p.Memory.Resident != 200 || !p.Left || p.StartSeconds+p.WallSeconds != 4 {
		t.Errorf("%+v", p)
	}
}
