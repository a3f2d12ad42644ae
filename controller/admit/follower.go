// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"time"

	"github.com/attune-hpc/attune/controller/gate"
	"github.com/attune-hpc/attune/controller/member"
	"github.com/attune-hpc/attune/controller/track"
	"github.com/attune-hpc/attune/internal/beat"
	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

var _ track.Handler = (*follower)(nil)

// follower is what the tracker tells of processes.
type follower struct {
	ways
	arrivals *arrivals
	early    *early
	door     *door
	entering *entering
}

// Started takes an image in and tells the Analyzer.
func (f *follower) Started(process *attunev1.Process, held *procid.Process) {
	t := member.New(process, member.Options{Cache: f.Cache, Functions: f.Functions, Foreign: f.Rights.Foreign})
	if held == nil {
		t.End()
	} else if reason := f.Rights.whyAlone(process); reason != nil {
		t.LeaveAlone(reason)
		f.closeWays(t)
	}
	f.Members.Add(t)
	f.early.knows()
	f.tell(f.Outbox.Started(t))
	if t.State() == member.Seen {
		settle := soon
		if f.Placer.ForAll() > 0 {
			settle = 0
		}
		f.arrivals.settle(t, settle)
	}
}

// tell has the news told soon, if they are the first.
func (f *follower) tell(first bool) {
	if first {
		f.arrivals.tell(beat.Near(time.Now().Add(soon)))
	}
}

// Changed passes on what became known, and looks for new places to watch.
func (f *follower) Changed(process *attunev1.Process) {
	t := f.Members.Get(process.GetHandle())
	if t == nil {
		return
	}
	objects := len(t.Snapshot().GetObjects())
	t.Update(process)
	f.Outbox.Changed(t)
	if t.State() != member.Seen && objects != len(process.GetObjects()) {
		f.Placer.Refresh(t.Handle())
		if a := f.entering.attached.Of(t).Load(); a != nil {
			f.Go(func() { a.extend(t) })
		}
	}
}

// Ended delivers what is left of an image and lets it go.
func (f *follower) Ended(ended *attunev1.ProcessEnded) {
	f.Meter.Flush() // while the process is known
	t := f.Members.Remove(ended.GetProcess())
	if t == nil {
		return
	}
	before := t.End()
	f.endAtGate(t, before, ended.GetReplacedByExec())
	if f.Meter.Holds(t) {
		f.Outbox.Flush() // what it has recorded comes before its end
	}
	f.Meter.Finish(t, ended)
	f.tell(f.Outbox.Ended(t, ended))
	f.release(t, before)
}

// endAtGate notes that an image has come to the gate that has ended before it
// was admitted. Its memory is let go unless the pid has another image by now,
// which may be the one that came.
func (f *follower) endAtGate(t *member.Member, before member.State, replaced bool) {
	came := replaced && f.arrivals.waiting(t.PID())
	if !replaced {
		var mine []gate.Attachment
		mine, came = f.arrivals.claim(t.PID())
		for _, a := range mine {
			f.door.letGo(a)
		}
	}
	if came && t.Memory() == nil || before == member.Registered {
		t.SetMechanism(member.MechanismDMLib, true, "")
		f.Outbox.Changed(t) // it may have been told of before
	}
}

// release lets go of everything that is kept about a process. It may wait for
// a tuning action under way, so it happens beside the tracker, unless the
// process was never heard of.
func (f *follower) release(t *member.Member, before member.State) {
	leave := func() {
		if err := f.Members.Leave(t); err != nil {
			f.Log.Debug("let go of a process", "pid", t.PID(), "error", err)
		}
	}
	if before == member.Seen && !t.Known() {
		leave()
		return
	}
	f.Go(leave)
}
