// SPDX-License-Identifier: Apache-2.0

package session

import (
	"slices"
	"time"

	"github.com/attune-hpc/attune/analyzer/core"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// introduceAfter is how old a process is when the tunlets hear of it, unless a
// measure point is hit in it before. A build or a shell script starts hundreds
// that live shorter: calls about them would cost more than they do, and there is
// no time to prove anything.
const introduceAfter = 200 * time.Millisecond

// population has everybody told, in this order, of processes that come and go. It
// belongs to the loop.
type population struct {
	clock       *clock
	teller      *teller
	processes   *processes
	wants       *wants
	points      *points
	askers      *askers
	decider     *decider
	inheritance *inheritance
	sleepers    *sleepers
	tunlets     *tunlets
	knowledge   *knowledge
	hurry       func()
	application *attunev1.Application
	newcomers   []*process // that the tunlets have not heard of yet
}

// start makes a process known, or known better.
func (po *population) start(c *controller, info *attunev1.Process) {
	p := po.processes.of(c, info.GetHandle())
	update := p != nil
	if update && p.ended {
		info.Handle = p.id
		po.emit(p, info) // for the report only: it does not live again
		return
	}
	if !update {
		started := po.clock.now()
		if at := po.clock.sinceUnix(info.GetSeenUnixNano(), c.shift); at > 0 && at < started {
			started = at
		}
		p = po.processes.add(c, info, started)
		p.shift = c.shift
		po.newcomers = append(po.newcomers, p)
	}
	info.Handle = p.id
	p.info = info
	if p.id == 1 && !update && len(po.application.GetCommand()) == 0 { // the first says what the application is
		po.application.Command = slices.Clone(info.GetCommandLine())
	}
	if !p.introduced {
		po.emit(p, info)
	}
	po.decider.step(core.ProcessStarted{Process: p.id, Executable: info.GetExecutable(), Program: programOf(info)})
	po.knowledge.recall(p)
	if p.introduced {
		po.tell(p, true)
	}
	if !update {
		po.points.setEarly(c, p.handle)
		po.inheritance.takeOver(c)
	}
}

// introduceGrown tells the tunlets of the processes that are old enough.
func (po *population) introduceGrown() {
	young := po.newcomers[:0]
	for _, p := range po.newcomers {
		switch {
		case p.ended || p.introduced:
		case po.clock.now()-p.started < introduceAfter:
			young = append(young, p)
		default:
			po.introduce(p)
		}
	}
	clear(po.newcomers[len(young):])
	po.newcomers = young
}

// introduce tells the tunlets of a process, unless it has been done.
func (po *population) introduce(p *process) {
	if p == nil || p.introduced || p.ended {
		return
	}
	p.introduced = true
	po.tell(p, false)
	po.hurry()
}

// tell tells the tunlets of a process, and gives askers what they want in it.
func (po *population) tell(p *process, update bool) {
	po.teller.emit(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_ProcessStarted{
		ProcessStarted: &attunev1.ProcessStartedRequest{Process: p.info, Update: update},
	}})
	po.sleepers.watch.Process(p.id, p.info.GetObjects())
	po.tunlets.processStarted(p.info, update)
	if !update {
		po.askers.extend(p)
	}
}

// end notes the end of a process. ended is nil when it was not told; it may yet be:
// the event channel can lag behind the end of the management channel.
func (po *population) end(p *process, ended *attunev1.ProcessEnded) {
	if p.ended {
		if !p.endKnown && ended != nil {
			p.mayGoOn = false
			po.emitEnd(p, ended)
		}
		return
	}
	p.ended, p.endedAt, p.endKnown = true, po.clock.now(), ended != nil
	p.replaced = ended.GetReplacedByExec()
	po.tunlets.forget(p.id)
	po.sleepers.watch.Forget(p.id)
	po.wants.mergeTables(p.id)
	told := ended
	if told == nil {
		told = &attunev1.ProcessEnded{}
	}
	po.emitEnd(p, told)
	if p.introduced {
		po.teller.emit(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_ProcessEnded{ProcessEnded: told}})
		po.tunlets.processEnded(told)
	}
	po.decider.step(core.ProcessEnded{Process: p.id}) // which tells them what has ended with it
	if !p.replaced {
		po.askers.shrink(p)
	}
	po.points.processEnded(p.id)
	p.info = nil
	if p := po.processes.omit(); p != nil {
		po.teller.emit(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Omission{
			Omission: &attunev1.RecordedOmission{Process: p.id},
		}})
	}
}

// emitEnd tells the sinks how and when a process ended, as far as it is known.
func (po *population) emitEnd(p *process, ended *attunev1.ProcessEnded) {
	ended.Process = p.id
	if by := p.controller.shift.behind - p.shift.behind; by > lateness && p.info != nil {
		p.started = min(p.started+by, p.endedAt)
		po.emit(p, p.info)
	}
	if at := po.clock.sinceUnix(ended.GetEndedUnixNano(), p.controller.shift); at > 0 && at >= p.started && at < p.endedAt {
		p.endedAt = at // news of processes come in batches
	}
	ended.EndedUnixNano = po.clock.start.Add(p.endedAt).UnixNano() // as all that tunlets are told
	po.teller.emit(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_ProcessGone{
		ProcessGone: &attunev1.RecordedProcessEnd{Ended: ended, EndedNanos: int64(p.endedAt), GoingOn: p.mayGoOn},
	}})
}

// emit tells the sinks what is known of a process.
func (po *population) emit(p *process, info *attunev1.Process) {
	po.teller.emit(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Process{
		Process: &attunev1.RecordedProcess{Process: info, StartedNanos: int64(p.started)},
	}})
}
