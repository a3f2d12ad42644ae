// SPDX-License-Identifier: Apache-2.0

package session

import (
	"slices"
	"time"

	"github.com/attune-hpc/attune/analyzer/core"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// startProcess makes a process known, or known better.
func (s *Session) startProcess(c *controller, info *attunev1.Process) {
	p := s.processes.of(c, info.GetHandle())
	update := p != nil
	if update && p.ended {
		info.Handle = p.id
		s.emitProcess(p, info) // for the report only: it does not live again
		return
	}
	if !update {
		started := s.now()
		if at := s.sinceUnix(info.GetSeenUnixNano()); at > 0 && at < started {
			started = at
		}
		p = s.processes.add(c, info, started)
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
		s.points.setEarly(c, p.handle)
		s.inherit(c)
	}
}

// first learns from the first process what the application is.
func (s *Session) first(info *attunev1.Process) {
	if s.processes.last == 1 && len(s.cfg.Command) == 0 {
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
		s.askers.extend(p)
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
	s.wants.mergeTables(p.id)
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
		s.askers.shrink(p)
	}
	s.points.processEnded(p.id)
	p.info = nil
	if p := s.processes.omit(); p != nil {
		s.emit(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Omission{Omission: &attunev1.RecordedOmission{Process: p.id}}})
	}
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
