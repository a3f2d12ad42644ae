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
	exactSource   = "the kernel's account of each process at its last switch (BPF)"
	bothSources   = "the kernel's account of each process at its last switch (BPF), and samples of /proc of those that it has none of"
	// whyBound is what is not in the sums, whyBoundRest where some are accounted for.
	whyBound     = "at least: what processes took before their first sample and after their last one is not in it"
	whyBoundRest = "at least: of processes that the kernel did not account for, or that had not ended, what they took before their first sample and after their last one is not in it"
	whyPart      = "at least: processes that the kernel did not account for, or that had not ended, are not in it"
)

// quality says how good numbers are, and where they come from.
type quality struct {
	accuracy    account.Accuracy
	source, why string
}

func (q quality) note(out *account.Account, names ...string) {
	for _, name := range names {
		out.Accuracy[name], out.Sources[name] = q.accuracy, q.source
		if q.why != "" {
			out.Missing[name] = q.why
		}
	}
}

// qualities are those of sums of what processes took, of what only the kernel's account
// has, and of how many processes there were.
func (e *exact) qualities(seen int, running uint64) (sums, kernel, count quality) {
	switch {
	case e.processes == seen && running == 0:
		exact := quality{account.Exact, exactSource, ""}
		return exact, exact, exact
	case e.processes > 0:
		return quality{account.Bound, bothSources, whyBoundRest}, quality{account.Bound, exactSource, whyPart}, quality{account.Sampled, sampledSource, ""}
	}
	return quality{account.Bound, sampledSource, whyBound}, quality{}, quality{account.Sampled, sampledSource, ""}
}

// taken is what the processes took as far as the kernel's accounts of them and their
// samples tell, in the time of a report; nil where there were neither. It stands in for an
// account of the command, which only who starts it can make.
func (a *Account) taken(r *report.Report) *account.Account {
	at := time.Duration(r.WallSeconds * float64(time.Second))
	if a.signals.peak == 0 && a.signals.exact.processes == 0 || at <= 0 {
		return nil
	}
	out := &account.Account{
		Schema: account.SchemaID, Version: a.header.Version, Command: r.Command, Exit: exitTaken(r.Exit),
		Start: a.start, End: a.start.Add(at), WallSeconds: at.Seconds(),
		Accuracy: map[string]account.Accuracy{"wall_seconds": account.Exact}, Sources: map[string]string{}, Missing: map[string]string{},
	}
	a.signals.takenNodes(out)
	running := a.processes.takenTree(out, at)
	sums, kernel, count := a.signals.exact.qualities(a.processes.seen(), running)
	a.signals.takenSums(out, sums)
	if a.signals.exact.processes > 0 {
		out.IO = a.signals.exact.io
		kernel.note(out, "io.read_bytes", "io.written_bytes", "io.read_calls", "io.written_calls", "io.storage_read_bytes", "io.storage_written_bytes")
	}
	out.Processes = account.Processes{Total: new(uint64(a.processes.seen() + a.signals.exact.unseen)), Left: &running}
	count.note(out, "processes.total", "processes.left")
	if count.accuracy != account.Exact {
		out.Missing["accuracy"] = "better where attune starts the command: attune run, attune account"
		count.note(out, "tree.cpu_seconds")
	}
	if a.signals.peak > 0 {
		out.Memory.Resident = new(a.signals.peak)
		quality{account.Sampled, sampledSource, ""}.note(out, "memory.resident_peak_bytes", "nodes.resident_peak_bytes", "tree.memory.resident_peak_bytes")
	}
	if a.processes.omitted > 0 {
		out.Missing["tree"] = "processes that have ended are left out, for there were too many"
	}
	return out
}

// takenTree lists the processes, and returns how many run, as far as is known.
func (ps *processes) takenTree(out *account.Account, at time.Duration) (running uint64) {
	rows := make(map[processID]int) // where in the tree a process is
	for _, p := range ps.order {
		if p.mayGoOn() {
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
	return running
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
func (s *signals) takenSums(out *account.Account, sums quality) {
	used := &s.used
	nanos := func(id series.ID) *float64 { return new(float64(used[id]) / 1e9) }
	out.CPUSeconds, out.CPUWaitSeconds = nanos(series.RunTime), nanos(series.RunqueueWait)
	out.UserSeconds, out.SystemSeconds = nanos(series.CPUUser), nanos(series.CPUSystem)
	out.CoresAverage = new(*out.CPUSeconds / out.WallSeconds)
	out.ContextSwitches = account.Switches{Voluntary: new(used[series.VoluntarySwitches]), Involuntary: new(used[series.InvoluntarySwitches])}
	out.Faults = account.Faults{Minor: new(used[series.MinorFaults]), Major: new(used[series.MajorFaults])}
	sums.note(out, "cpu_seconds", "cpu_wait_seconds", "user_seconds", "system_seconds", "cores_average",
		"context_switches.voluntary", "context_switches.involuntary", "faults.minor", "faults.major")
	if len(out.Nodes) > 0 {
		sums.note(out, "nodes.cpu_seconds")
	}
	if sums.accuracy == account.Exact { // ticks see where a thread is; the kernel scales that to the exact sum
		quality{account.Sampled, exactSource, ""}.note(out, "user_seconds", "system_seconds")
	}
}

// joined is what a process took that was seen as two images, one after the other.
func joined(before, after account.Process) account.Process {
	after.WallSeconds += after.StartSeconds - before.StartSeconds
	after.StartSeconds, after.Parent = before.StartSeconds, before.Parent
	return after
}

// taken is what is known of a process, as of one image of it.
func (p *process) taken(at time.Duration) account.Process {
	end := at
	if p.ended {
		end = p.endedAt
	}
	out := account.Process{
		PID: p.info.PID, Parent: p.info.ParentPID, Name: filepath.Base(p.info.Exe), Left: p.mayGoOn(),
		StartSeconds: p.started.Seconds(), WallSeconds: max(0, end-p.started).Seconds(),
	}
	seconds := func(id series.ID) *float64 { return new(float64(p.life.used[id]) / 1e9) }
	if p.life.resident > 0 {
		out.CPUSeconds, out.Memory.Resident = seconds(series.RunTime), new(p.life.resident)
	}
	if t := p.life.taken; t != nil {
		out.CPUSeconds, out.UserSeconds, out.SystemSeconds = seconds(series.RunTime), seconds(series.CPUUser), seconds(series.CPUSystem)
		out.IO = ioOf(t)
		out.ContextSwitches = account.Switches{Voluntary: new(t.GetVoluntarySwitches()), Involuntary: new(t.GetInvoluntarySwitches())}
		out.Faults = account.Faults{Minor: new(t.GetMinorFaults()), Major: new(t.GetMajorFaults())}
	}
	return out
}
