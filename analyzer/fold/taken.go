// SPDX-License-Identifier: Apache-2.0

package fold

import (
	"path/filepath"
	"time"

	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/proto/attune/series"
)

const (
	sampledSource = "samples of /proc of all processes, while attune was there"
	// whyBound is what is not in the sums.
	whyBound = "at least: what processes took before their first sample and after their last one is not in it"
)

// taken is what the processes took as far as their samples tell, in the time of a report;
// nil where there were none. It stands in for an account of the command, which only
// who starts it can make.
func (a *Account) taken(r *report.Report) *account.Account {
	at := time.Duration(r.WallSeconds * float64(time.Second))
	if a.signals.peak == 0 || at <= 0 {
		return nil
	}
	out := &account.Account{
		Schema: account.SchemaID, Version: a.header.Version, Command: r.Command, Exit: exitTaken(r.Exit),
		Start: a.start, End: a.start.Add(at), WallSeconds: at.Seconds(),
		Accuracy: map[string]account.Accuracy{"wall_seconds": account.Exact}, Sources: map[string]string{},
		Missing: map[string]string{"accuracy": "better where attune starts the command: attune run, attune account"},
	}
	a.signals.takenNodes(out)
	a.takenSums(out)
	running, rows := uint64(0), make(map[processID]int) // where in the tree a process is
	for _, p := range a.processes.order {
		if !p.ended {
			running++
		}
		image := p.taken(at)
		if len(out.Nodes) > 0 {
			image.Node = p.id.host
		}
		if row, known := rows[p.id]; known {
			out.Tree[row] = joined(out.Tree[row], image)
			continue
		}
		rows[p.id] = len(out.Tree)
		out.Tree = append(out.Tree, image)
	}
	out.Processes = account.Processes{Total: new(uint64(a.processes.seen())), Left: &running}
	out.Memory.Resident = &a.signals.peak
	for _, name := range []string{"processes.total", "processes.left", "memory.resident_peak_bytes", "nodes.resident_peak_bytes", "tree.cpu_seconds", "tree.memory.resident_peak_bytes"} {
		out.Accuracy[name], out.Sources[name] = account.Sampled, sampledSource
	}
	if a.processes.omitted > 0 {
		out.Missing["tree"] = "processes that have ended are left out, for there were too many"
	}
	return out
}

func exitTaken(e report.Exit) account.Exit {
	switch {
	case e.Signal != "":
		return account.Exit{Type: account.ExitSignal, Signal: e.Signal}
	case e.Code != nil:
		return account.Exit{Type: account.ExitNormal, Code: e.Code}
	}
	return account.Exit{Type: account.ExitLost}
}

// takenSums fills in what adds up.
func (a *Account) takenSums(out *account.Account) {
	used := &a.signals.used
	nanos := func(id series.ID) *float64 { return new(float64(used[id]) / 1e9) }
	out.CPUSeconds, out.CPUWaitSeconds = nanos(series.RunTime), nanos(series.RunqueueWait)
	out.UserSeconds, out.SystemSeconds = nanos(series.CPUUser), nanos(series.CPUSystem)
	out.CoresAverage = new(*out.CPUSeconds / out.WallSeconds)
	out.ContextSwitches = account.Switches{Voluntary: new(used[series.VoluntarySwitches]), Involuntary: new(used[series.InvoluntarySwitches])}
	out.Faults = account.Faults{Minor: new(used[series.MinorFaults]), Major: new(used[series.MajorFaults])}
	names := []string{
		"cpu_seconds", "cpu_wait_seconds", "user_seconds", "system_seconds", "cores_average", "context_switches.voluntary", "context_switches.involuntary",
		"faults.minor", "faults.major",
	}
	if len(out.Nodes) > 0 {
		names = append(names, "nodes.cpu_seconds")
	}
	for _, name := range names {
		out.Accuracy[name], out.Sources[name], out.Missing[name] = account.Bound, sampledSource, whyBound
	}
}

// joined is what a process took that was seen as two images, one after the other.
func joined(before, after account.Process) account.Process {
	after.WallSeconds += after.StartSeconds - before.StartSeconds
	after.StartSeconds, after.Parent = before.StartSeconds, before.Parent
	switch {
	case before.CPUSeconds == nil:
	case after.CPUSeconds == nil:
		after.CPUSeconds, after.Memory.Resident = before.CPUSeconds, before.Memory.Resident
	default:
		after.CPUSeconds = new(*before.CPUSeconds + *after.CPUSeconds)
		after.Memory.Resident = new(max(*before.Memory.Resident, *after.Memory.Resident))
	}
	return after
}

// taken is what is known of one image of a process.
func (p *process) taken(at time.Duration) account.Process {
	end := at
	if p.ended {
		end = p.endedAt
	}
	out := account.Process{
		PID: p.info.PID, Parent: p.info.ParentPID, Name: filepath.Base(p.info.Exe), Left: !p.ended,
		StartSeconds: p.started.Seconds(), WallSeconds: max(0, end-p.started).Seconds(),
	}
	if p.resident > 0 {
		out.CPUSeconds, out.Memory.Resident = new(p.cpu.Seconds()), &p.resident
	}
	return out
}
