// SPDX-License-Identifier: Apache-2.0

package session

import (
	"slices"
	"time"

	"github.com/attune-hpc/attune/analyzer/core"
	"github.com/attune-hpc/attune/analyzer/report"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	// maxProcesses bounds the processes that the report lists; those that run
	// or were changed are among them also beyond it.
	maxProcesses = 2000
	// maxChanged bounds them together with those that have ended changed.
	maxChanged = 2 * maxProcesses
)

// process is one process image under control.
type process struct {
	id         uint64 // the session's handle
	handle     uint64 // the controller's
	controller *controller
	info       *attunev1.Process // with the session's handle; never modified
	started    time.Duration
	introduced bool     // the tunlets know of it
	changes    []string // ids of those that were sent to it
	ended      bool
	endedAt    time.Duration
	end        *attunev1.ProcessEnded // nil: not known how
}

// startProcess makes a process known, or known better.
func (s *Session) startProcess(c *controller, info *attunev1.Process) {
	p := s.processes[c.local[info.GetHandle()]]
	update := p != nil
	if update && p.ended {
		info.Handle, p.info = p.id, slim(info) // for the report only: it does not live again
		return
	}
	if !update {
		s.lastProcess++
		p = &process{id: s.lastProcess, handle: info.GetHandle(), controller: c, started: s.now()}
		if at := s.sinceUnix(info.GetSeenUnixNano()); at > 0 && at < p.started {
			p.started = at
		}
		c.local[p.handle], c.newest = p.id, max(c.newest, p.handle)
		s.processes[p.id] = p
		s.order = append(s.order, p)
		s.newcomers = append(s.newcomers, p)
	}
	info.Handle = p.id
	p.info = info
	if !update {
		s.first(info)
		s.entry(report.Entry{Kind: "process_started", Process: p.pid(), Text: info.GetExecutable()})
	}
	s.step(core.ProcessStarted{Process: p.id, Executable: info.GetExecutable(), Program: programOf(info)})
	s.recall(p)
	if p.introduced {
		s.tellProcess(p, true)
	}
	if !update {
		s.earlyStatus(c, p.handle)
		s.inherit(c)
		s.cfg.Changed()
	}
}

// first learns from the first process what the application is.
func (s *Session) first(info *attunev1.Process) {
	if s.lastProcess != 1 {
		return
	}
	s.owner = info.GetUid()
	if len(s.cfg.Command) == 0 {
		s.cfg.Command = slices.Clone(info.GetCommandLine())
	}
}

// introduceAfter is how old a process is when the tunlets hear of it, unless a
// measure point is hit in it before. A build or a shell script starts hundreds
// that live shorter: calls about them would cost more than they do, and there is
// no time to prove anything.
const introduceAfter = 200 * time.Millisecond

// introduceGrown tells the tunlets of the processes that are old enough.
func (s *Session) introduceGrown() {
	young := s.newcomers[:0]
	for _, p := range s.newcomers {
		switch {
		case p.ended || p.introduced:
		case s.now()-p.started < introduceAfter:
			young = append(young, p)
		default:
			s.introduce(p)
		}
	}
	clear(s.newcomers[len(young):])
	s.newcomers = young
}

// introduce tells the tunlets of a process, unless it has been done.
func (s *Session) introduce(p *process) {
	if p == nil || p.introduced || p.ended {
		return
	}
	p.introduced = true
	s.tellProcess(p, false)
	s.hurry()
}

func (s *Session) tellProcess(p *process, update bool) {
	s.writeProcess(p.info, update)
	s.sleepers.watch.Process(p.id, p.info.GetObjects())
	for _, t := range s.tunlets {
		t.processStarted(p.info, update)
	}
}

// endProcess notes the end of a process. ended is nil when it was not told; it
// may yet be: the event channel can lag behind the end of the management
// channel.
func (s *Session) endProcess(p *process, ended *attunev1.ProcessEnded) {
	if p.ended {
		if p.end == nil {
			s.tellEnd(p, ended)
		}
		return
	}
	p.ended, p.endedAt = true, s.now()
	s.tellEnd(p, ended)
	for _, t := range s.tunlets {
		t.wants.Forget(p.id)
	}
	s.sleepers.watch.Forget(p.id)
	told := ended
	if told == nil {
		told = &attunev1.ProcessEnded{EndedUnixNano: s.cfg.now().UnixNano()}
	}
	told.Process = p.id
	s.entry(report.Entry{Kind: "process_ended", Process: p.pid(), Text: p.info.GetExecutable()})
	s.step(core.ProcessEnded{Process: p.id})
	if p.introduced {
		s.writeEnd(told)
		for _, t := range s.tunlets {
			t.processEnded(told)
		}
	}
	s.points.processEnded(p.id, ended.GetReplacedByExec())
	p.info = slim(p.info)
	s.omitProcess()
	s.cfg.Changed()
}

// tellEnd notes how and when a process ended, as far as it was told.
func (s *Session) tellEnd(p *process, ended *attunev1.ProcessEnded) {
	p.end = ended
	if at := s.sinceUnix(ended.GetEndedUnixNano()); at >= p.started && at < p.endedAt {
		p.endedAt = at // news of processes come in batches
	}
}

// slim returns what the report needs of a process that has ended: a job may
// start a hundred thousand of them.
func slim(info *attunev1.Process) *attunev1.Process {
	return &attunev1.Process{
		Handle: info.GetHandle(), Identity: info.GetIdentity(), ParentPid: info.GetParentPid(), Host: info.GetHost(),
		Executable: info.GetExecutable(), ExecutableSha256: info.GetExecutableSha256(),
		Rank: info.Rank, Mechanisms: info.GetMechanisms(),
	}
}

// omitProcess forgets the oldest process that has ended and was not changed, if
// there are too many; if there are far too many, also one that was changed.
func (s *Session) omitProcess() {
	if len(s.order) <= maxProcesses {
		return
	}
	i := slices.IndexFunc(s.order, func(p *process) bool { return p.ended && len(p.changes) == 0 })
	if i < 0 && len(s.order) > maxChanged {
		i = slices.IndexFunc(s.order, func(p *process) bool { return p.ended })
	}
	if i < 0 {
		return
	}
	p := s.order[i]
	s.order = slices.Delete(s.order, i, i+1)
	delete(s.processes, p.id)
	delete(p.controller.local, p.handle)
	for _, id := range p.changes {
		delete(s.changedIn, id)
	}
	s.omitted++
}

// pid returns the process id.
func (p *process) pid() int { return int(p.info.GetIdentity().GetPid()) }

// pidOf returns the process id behind a session's handle; 0 if there is none.
func (s *Session) pidOf(id uint64) int {
	if p := s.processes[id]; p != nil {
		return p.pid()
	}
	return 0
}

// hostOf returns the host of the process behind a session's handle; "" if there
// is none.
func (s *Session) hostOf(id uint64) string {
	if p := s.processes[id]; p != nil {
		return p.info.GetHost()
	}
	return ""
}
