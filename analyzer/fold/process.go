// SPDX-License-Identifier: Apache-2.0

package fold

import (
	"cmp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/attune-hpc/attune/analyzer/report"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// process is one process image.
type process struct {
	handle         uint64
	user           uint32
	info           report.Process // but for what depends on its end
	closed         string         // why mechanisms are closed
	started        time.Duration
	ended          bool
	endedAt        time.Duration
	replacedByExec bool
	exit           *report.Exit
}

// process makes a process known, or known better.
func (a *Account) process(info *attunev1.Process) *process {
	p := a.processes[info.GetHandle()]
	if p == nil {
		if len(a.order)+a.omitted == 0 {
			a.first(info)
		}
		p = &process{handle: info.GetHandle(), user: info.GetUid()}
		a.processes[p.handle] = p
		a.order = append(a.order, p)
	}
	p.info = report.Process{
		PID: int(info.GetIdentity().GetPid()), ParentPID: int(info.GetParentPid()), Host: info.GetHost(),
		Exe: info.GetExecutable(), SHA256: info.GetExecutableSha256(), Mechanisms: []string{},
	}
	if info.Rank != nil {
		rank := int(info.GetRank())
		p.info.Rank = &rank
	}
	p.mechanisms(info.GetMechanisms())
	return p
}

// first learns from the first process what the application is.
func (a *Account) first(info *attunev1.Process) {
	a.user = info.GetUid()
	if len(a.header.Command) == 0 {
		a.header.Command = slices.Clone(info.GetCommandLine())
	}
}

func (p *process) mechanisms(all []*attunev1.Mechanism) {
	var closed []string
	for _, m := range all {
		if !m.GetAvailable() {
			closed = append(closed, m.GetName()+": "+cmp.Or(m.GetReason(), "not available"))
			continue
		}
		p.info.Mechanisms = append(p.info.Mechanisms, m.GetName())
		p.info.Instrumented = p.info.Instrumented || m.GetName() != "proc" && m.GetName() != "vm_write"
	}
	p.closed = strings.Join(closed, "; ")
}

// processGone notes how and when a process has ended, as far as it was told.
func (a *Account) processGone(end *attunev1.RecordedProcessEnd) {
	p := a.processes[end.GetEnded().GetProcess()]
	if p == nil {
		a.news = false
		return
	}
	a.news = !p.ended
	p.ended, p.endedAt = true, time.Duration(end.GetEndedNanos())
	p.replacedByExec, p.exit = end.GetEnded().GetReplacedByExec(), nil
	if end.GetEnded().WaitStatus != nil && !p.replacedByExec {
		p.exit = exitStatus(syscall.WaitStatus(end.GetEnded().GetWaitStatus()))
	}
	a.points.processGone(p.handle, p.replacedByExec)
}

// exitStatus translates a wait status.
func exitStatus(ws syscall.WaitStatus) *report.Exit {
	if ws.Signaled() {
		return &report.Exit{Signal: report.SignalName(ws.Signal())}
	}
	code := ws.ExitStatus()
	return &report.Exit{Code: &code}
}

// omit forgets what the session forgets.
func (a *Account) omit(o *attunev1.RecordedOmission) {
	if p := a.processes[o.GetProcess()]; p != nil {
		delete(a.processes, p.handle)
		a.order = slices.DeleteFunc(a.order, func(q *process) bool { return q == p })
		a.omitted++
	}
	for _, number := range o.GetProposals() {
		delete(a.proposals, number)
	}
	a.unlisted = max(a.unlisted, o.GetProposalsOmitted())
}

// pid returns the process id behind a handle; 0 if there is none.
func (a *Account) pid(handle uint64) int {
	if p := a.processes[handle]; p != nil {
		return p.info.PID
	}
	return 0
}

// Image is a process image that runs.
type Image struct {
	// Handle is the session's.
	Handle uint64
	// PID is its process id on Host.
	PID int
	// Host is its node.
	Host string
	// User is its user id.
	User uint32
	// Executable is its path.
	Executable string
}

// Image returns the image behind a handle; of an unknown one an empty one.
func (a *Account) Image(handle uint64) Image {
	if p := a.processes[handle]; p != nil {
		return p.image()
	}
	return Image{}
}

func (p *process) image() Image {
	return Image{Handle: p.handle, PID: p.info.PID, Host: p.info.Host, User: p.user, Executable: p.info.Exe}
}

// Running returns the images that run, the latest first.
func (a *Account) Running() (out []Image) {
	for _, p := range slices.Backward(a.order) {
		if !p.ended {
			out = append(out, p.image())
		}
	}
	return out
}

// executable returns the path behind a handle; empty if there is none.
func (a *Account) executable(handle uint64) string {
	if p := a.processes[handle]; p != nil {
		return p.info.Exe
	}
	return ""
}

// report returns the process as the report has it.
func (p *process) report() report.Process {
	out := p.info
	out.StartedSeconds, out.ReplacedByExec, out.Exit = p.started.Seconds(), p.replacedByExec, p.exit
	out.NotInstrumented = p.closed
	if !out.Instrumented && p.closed == "" {
		out.NotInstrumented = report.ShortLived
		if !p.ended {
			out.NotInstrumented = "not under control yet"
		}
	}
	if p.ended {
		sec := p.endedAt.Seconds()
		out.EndedSeconds = &sec
	}
	return out
}

// state returns a running process as the live view has it.
func (p *process) state() report.ProcessState {
	out := report.ProcessState{PID: p.info.PID, Rank: -1, Exe: p.info.Exe, Mechanisms: slices.Clone(p.info.Mechanisms)}
	if p.info.Rank != nil {
		out.Rank = *p.info.Rank
	}
	return out
}
