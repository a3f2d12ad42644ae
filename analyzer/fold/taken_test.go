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
	sample(2, 3e9, 900) // which is in no report from before
	if got == nil || *got.CPUSeconds != 4 || *got.CoresAverage != 1 || *got.Memory.Resident != 300 || *got.Processes.Total != 2 || *got.Processes.Left != 1 {
		t.Fatalf("%+v", got)
	}
	if got.Accuracy["cpu_seconds"] != account.Bound || got.IO.Read != nil || got.Exit.Type != account.ExitLost {
		t.Errorf("%+v", got)
	}
	if resident := *got.Tree[1].Memory.Resident; resident != 260 {
		t.Errorf("process 8 had %d bytes at most", resident)
	}
	if p := got.Tree[0]; p.PID != 7 || *p.CPUSeconds != 1 || *p.Memory.Resident != 100 || p.WallSeconds != 1 || p.Left {
		t.Errorf("%+v", p)
	}
	a.Take(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Exit{Exit: &attunev1.RecordedExit{Account: []byte(`{"wall_seconds": 77}`)}}})
	if got := a.Report(4 * time.Second).Account; got.WallSeconds != 77 {
		t.Errorf("the account of the command is not in the report: %+v", got)
	}
}

// TestTakenAsAccountedFor: the kernel's account of a process replaces what its samples say,
// of all its images; what had ended unseen counts; and where it has one of every process
// the sums are exact, also without samples.
func TestTakenAsAccountedFor(t *testing.T) {
	a := NewAccount()
	a.Take(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Header{Header: &attunev1.RecordingHeader{StartUnixNano: 1e18}}})
	image := func(handle uint64, pid int32) {
		a.Take(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Process{Process: &attunev1.RecordedProcess{Process: &attunev1.Process{
			Handle: handle, Host: "n1", Identity: &attunev1.ProcessIdentity{Pid: pid, StartTicks: 1}, Executable: "/bin/solver",
		}}}})
	}
	sample := func(handle, run uint64) {
		a.Take(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Samples{Samples: &attunev1.SampleBatch{Samples: []*attunev1.Sample{{
			Process: handle, Tables: []*attunev1.Table{series.SignalTable(series.Reading{ID: series.RunTime, Value: run}, series.Reading{ID: series.ResidentBytes, Value: 10})},
		}}}}})
	}
	end := func(handle uint64, replaced bool, taken *attunev1.Taken) {
		a.Take(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_ProcessGone{ProcessGone: &attunev1.RecordedProcessEnd{
			Ended: &attunev1.ProcessEnded{Process: handle, ReplacedByExec: replaced, Taken: taken}, EndedNanos: 2e9,
		}}})
	}
	image(1, 7)
	sample(1, 1e9)
	sample(1, 2e9)
	end(1, true, nil)
	image(2, 7)
	sample(2, 2e9)
	sample(2, 3e9)
	image(3, 8)
	end(3, false, &attunev1.Taken{CpuNanos: 5e8, UserNanos: 4e8, ReadBytes: 3, MinorFaults: 9})
	part := a.Report(4 * time.Second).Account
	if *part.CPUSeconds != 2.5 || part.Accuracy["cpu_seconds"] != account.Bound || *part.IO.Read != 3 || part.Accuracy["io.read_bytes"] != account.Bound || part.Missing["io.read_bytes"] == "" {
		t.Errorf("while one runs: %+v", part)
	}
	end(2, false, &attunev1.Taken{CpuNanos: 4e9, UserNanos: 1e9, ReadBytes: 4, MinorFaults: 1, UnseenProcesses: 2})
	end(2, false, &attunev1.Taken{CpuNanos: 4e9, UserNanos: 1e9, ReadBytes: 4, MinorFaults: 1, UnseenProcesses: 2}) // told again
	got := a.Report(4 * time.Second).Account
	if *got.CPUSeconds != 4.5 || *got.UserSeconds != 1.4 || *got.IO.Read != 7 || *got.Faults.Minor != 10 || *got.Processes.Total != 4 || *got.CoresAverage != 1.125 {
		t.Errorf("%+v", got)
	}
	for _, name := range []string{"cpu_seconds", "io.read_bytes", "processes.total", "faults.minor"} {
		if got.Accuracy[name] != account.Exact || got.Missing[name] != "" {
			t.Errorf("%s: %s, %s", name, got.Accuracy[name], got.Missing[name])
		}
	}
	if got.Accuracy["user_seconds"] != account.Sampled || len(got.Tree) != 2 || *got.Tree[0].CPUSeconds != 4 || *got.Tree[1].IO.Read != 3 {
		t.Errorf("%+v", got)
	}
}

// TestTakenOnNodes: what a job could have and took on two nodes is that of both, with the
// memory of each; where one tells nothing, nothing is said of both.
func TestTakenOnNodes(t *testing.T) {
	a := NewAccount()
	a.Take(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Header{Header: &attunev1.RecordingHeader{StartUnixNano: 1e18}}})
	process := func(handle uint64, host string, available *attunev1.Available) {
		a.Take(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Process{Process: &attunev1.RecordedProcess{Process: &attunev1.Process{
			Handle: handle, Host: host, Identity: &attunev1.ProcessIdentity{Pid: 7}, Executable: "/bin/solver", Available: available,
		}}}})
	}
	sample := func(handle, run, resident uint64) {
		a.Take(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Samples{Samples: &attunev1.SampleBatch{Samples: []*attunev1.Sample{{
			Process: handle, Tables: []*attunev1.Table{series.SignalTable(series.Reading{ID: series.RunTime, Value: run}, series.Reading{ID: series.ResidentBytes, Value: resident})},
		}}}}})
	}
	asked := &attunev1.Available{BatchSystem: "slurm", Job: "12", Cores: 2, MemoryBytes: 1000, WallSeconds: 600, CoresSource: "asked of slurm", MemorySource: "asked of slurm"}
	process(1, "node1", asked)
	process(2, "node2", asked)
	process(3, "node2", nil) // which the one before has started
	for handle := range uint64(3) {
		sample(handle+1, 0, 100)
		sample(handle+1, 1e9*(handle+1), 300)
	}
	got := a.Report(4 * time.Second).Account
	if v := got.Available; *v.Cores != 4 || *v.Memory != 2000 || *v.WallSeconds != 600 || v.System != "slurm" || v.Job != "12" || !v.Part {
		t.Errorf("the job could have %+v", v)
	}
	if len(got.Nodes) != 2 || *got.Nodes[0].CPU != 1 || *got.Nodes[1].CPU != 5 || *got.Nodes[1].Resident != 600 || *got.Nodes[1].Memory != 1000 || got.Tree[1].Node != "node2" {
		t.Errorf("on the nodes: %+v, %+v", got.Nodes, got.Tree)
	}
	if got.Sources["available.cores"] != "asked of slurm" || got.Accuracy["available.wall_seconds"] != account.Exact {
		t.Errorf("%v, %v", got.Sources, got.Accuracy)
	}
	process(4, "node3", nil)
	if got := a.Report(4 * time.Second).Account; got.Nodes[2].CPU != nil || got.Nodes[2].Resident != nil {
		t.Errorf("of a node without samples: %+v", got.Nodes[2])
	}
	sample(4, 0, 100)
	if got := a.Report(4 * time.Second).Account; got.Available.Cores != nil || got.Available.Memory != nil || got.Sources["available.cores"] != "" {
		t.Errorf("of a node that is not known: %+v, %v", got.Available, got.Sources)
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
