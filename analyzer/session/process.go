// SPDX-License-Identifier: Apache-2.0

package session

import (
	"slices"
	"time"

	"github.com/attune-hpc/attune/analyzer/core"
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
	pid        int
	handle     uint64 // the controller's
	controller *controller
	info       *attunev1.Process // with the session's handle, never modified; nil after its end
	started    time.Duration
	introduced bool     // the tunlets know of it
	changes    []string // ids of those that were sent to it
	ended      bool
	endedAt    time.Duration
	endKnown   bool // how it ended
	replaced   bool // another image has taken its place
}

// startProcess makes a process known, or known better.
func (s *Session) startProcess(c *controller, info *attunev1.Process) {
	p := s.processes[c.local[info.GetHandle()]]
	update := p != nil
	if update && p.ended {
		info.Handle = p.id
		s.emitProcess(p, info) // for the report only: it does not live again
		return
	}
	if !update {
		s.lastProcess++
		p = &process{
			id: s.lastProcess, pid: int(info.GetIdentity().GetPid()), handle: info.GetHandle(), controller: c, started: s.now(),
		}
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
	}
	if !p.introduced {
		s.emitProcess(p, info)
	}
	s.step(core.ProcessStarted{Process: p.id, Executable: info.GetExecutable(), Program: programOf(info)})
	s.recall(p)
	if p.introduced {
		s.tellProcess(p, true)
	}
	if !update {
		s.earlyStatus(c, p.handle)
		s.inherit(c)
	}
}

// first learns from the first process what the application is.
func (s *Session) first(info *attunev1.Process) {
	if s.lastProcess == 1 && len(s.cfg.Command) == 0 {
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
	s.emit(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_ProcessStarted{
		ProcessStarted: &attunev1.ProcessStartedRequest{Process: p.info, Update: update},
	}})
	s.sleepers.watch.Process(p.id, p.info.GetObjects())
	for _, t := range s.tunlets {
		t.processStarted(p.info, update)
	}
	if !update {
		s.extendWants(p)
	}
}

// endProcess notes the end of a process. ended is nil when it was not told; it
// may yet be: the event channel can lag behind the end of the management
// channel.
func (s *Session) endProcess(p *process, ended *attunev1.ProcessEnded) {
	if p.ended {
		if !p.endKnown && ended != nil {
			s.emitEnd(p, ended)
		}
		return
	}
	p.ended, p.endedAt, p.endKnown = true, s.now(), ended != nil
	p.replaced = ended.GetReplacedByExec()
	for _, t := range s.tunlets {
		t.feed.Forget(p.id)
	}
	s.sleepers.watch.Forget(p.id)
	s.wantTables(p.id)
	told := ended
	if told == nil {
		told = &attunev1.ProcessEnded{EndedUnixNano: s.cfg.now().UnixNano()}
	}
	s.emitEnd(p, told)
	s.step(core.ProcessEnded{Process: p.id})
	if p.introduced {
		s.emit(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_ProcessEnded{ProcessEnded: told}})
		for _, t := range s.tunlets {
			t.processEnded(told)
		}
	}
	if !p.replaced {
		s.shrinkWants(p)
	}
	s.points.processEnded(p.id)
	p.info = nil
	s.omitProcess()
}

// lives says whether a process is known and has not ended.
func (s *Session) lives(id uint64) bool { return s.processes[id] != nil && !s.processes[id].ended }

// runningOf lists the processes of a controller that have not ended. The list is the
// caller's: it stays as it is while processes end and are forgotten.
func (s *Session) runningOf(c *controller) (running []*process) {
	for _, p := range s.order {
		if p.controller == c && !p.ended {
			running = append(running, p)
		}
	}
	return running
}

// emitEnd tells the sinks how and when a process ended, as far as it is known.
func (s *Session) emitEnd(p *process, ended *attunev1.ProcessEnded) {
	ended.Process = p.id
	if at := s.sinceUnix(ended.GetEndedUnixNano()); at >= p.started && at < p.endedAt {
		p.endedAt = at // news of processes come in batches
	}
	s.emit(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_ProcessGone{
		ProcessGone: &attunev1.RecordedProcessEnd{Ended: ended, EndedNanos: int64(p.endedAt)},
	}})
}

// emitProcess tells the sinks what is known of a process.
func (s *Session) emitProcess(p *process, info *attunev1.Process) {
	s.emit(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Process{
		Process: &attunev1.RecordedProcess{Process: info, StartedNanos: int64(p.started)},
	}})
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
	s.emit(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Omission{Omission: &attunev1.RecordedOmission{Process: p.id}}})
}
