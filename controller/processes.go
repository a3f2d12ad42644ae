// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/attune-hpc/attune/controller/attach"
	"github.com/attune-hpc/attune/controller/member"
	"github.com/attune-hpc/attune/controller/track"
	"github.com/attune-hpc/attune/internal/beat"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Mechanisms of a process.
const (
	mechanismDMLib   = "dmlib"
	mechanismUprobe  = "uprobe"
	mechanismVMWrite = "vm_write"
)

var _ track.Handler = (*follower)(nil)

// follower is what the tracker tells of processes.
type follower struct{ *Controller }

// Started takes an image in and tells the Analyzer.
func (f *follower) Started(process *attunev1.Process, held *procid.Process) {
	t := member.New(process, member.Options{Cache: f.cache, Functions: f.functions})
	if held == nil {
		t.End()
	} else if reason := f.foreign(t.PID()); reason != nil {
		t.LeaveAlone(reason)
		f.closeWays(t)
	}
	f.members.Add(t)
	f.early.knows(f.Controller)
	f.tell(f.outbox.Started(t))
	if t.State() == member.Seen {
		settle := soon
		if f.placer.ForAll() > 0 {
			settle = 0
		}
		f.arrivals.change(func() { f.arrivals.young.push(t, settle) })
	}
}

// tell has the news told soon, if they are the first.
func (f *follower) tell(first bool) {
	if first {
		f.arrivals.change(func() { f.arrivals.news = beat.Near(time.Now().Add(soon)) })
	}
}

// Changed passes on what became known, and looks for new places to watch.
func (f *follower) Changed(process *attunev1.Process) {
	t := f.members.Get(process.GetHandle())
	if t == nil {
		return
	}
	objects := len(t.Snapshot().GetObjects())
	t.Update(process)
	f.outbox.Changed(t)
	if t.State() != member.Seen && objects != len(process.GetObjects()) {
		f.placer.Refresh(t.Handle())
		if a := f.attached.Of(t).Load(); a != nil {
			f.work.Go(func() { a.extend(t) })
		}
	}
}

// Ended delivers what is left of an image and lets it go.
func (f *follower) Ended(ended *attunev1.ProcessEnded) {
	f.meter.Flush() // while the process is known
	t := f.members.Remove(ended.GetProcess())
	if t == nil {
		return
	}
	before := t.End()
	f.endAtGate(t, before, ended.GetReplacedByExec())
	if f.meter.Holds(t) {
		f.outbox.Flush() // what it has recorded comes before its end
	}
	f.meter.Finish(t, ended)
	f.tell(f.outbox.Ended(t, ended))
	f.release(t, before)
}

// endAtGate notes that an image has come to the gate that has ended before it
// was admitted. Its memory is let go unless the pid has another image by now,
// which may be the one that came.
func (f *follower) endAtGate(t *member.Member, before member.State, replaced bool) {
	came := replaced && f.arrivals.waiting(t.PID())
	if !replaced {
		var mine []attach.Attachment
		mine, came = f.arrivals.claim(t.PID())
		for _, a := range mine {
			f.letGo(a)
		}
	}
	if came && t.Memory() == nil || before == member.Registered {
		t.SetMechanism(mechanismDMLib, true, "")
	}
}

// release lets go of everything that is kept about a process. It may wait for
// a tuning action under way, so it happens beside the tracker, unless the
// process was never heard of.
func (f *follower) release(t *member.Member, before member.State) {
	leave := func() {
		if err := f.members.Leave(t); err != nil {
			f.log.Debug("let go of a process", "pid", t.PID(), "error", err)
		}
	}
	if before == member.Seen && !t.Told() {
		leave()
		return
	}
	f.work.Go(leave)
}

// onLeave has everybody forget a process that has gone.
func (c *Controller) onLeave() {
	c.members.OnLeave(func(t *member.Member) { c.placer.Release(t.Handle()) })
	c.members.OnLeave(func(t *member.Member) {
		if a := c.attached.Of(t).Load(); a != nil && c.config.LateLibrary {
			_ = a.process.Close() // it is closed already by whoever left it
		}
	})
}

// place places the measure points in a process. Whoever let go of it meanwhile has
// not seen that.
func (c *Controller) place(ctx context.Context, t *member.Member, held bool) {
	c.placer.Admit(ctx, t, held)
	if !t.Alive() {
		c.placer.Release(t.Handle())
	}
}

// admit places the measure points in a process with DMLib.
func (c *Controller) admit(ctx context.Context, t *member.Member, held bool) {
	outside, ok := t.AdmitInside()
	if !ok {
		return // it has ended
	}
	if outside {
		c.placer.Release(t.Handle()) // was taken for one without DMLib
	}
	t.SetMechanism(mechanismDMLib, true, "")
	c.openWays(t)
	c.changed(t)
	c.place(ctx, t, held)
}

// expect takes a process in that cannot come to the gate, and gives any other
// the time that it needs.
func (c *Controller) expect(t *member.Member) {
	if c.config.LateLibrary {
		c.lateExpect(t)
		return
	}
	if !c.arrivals.waiting(t.PID()) && c.whyNoPreload(t) != "" {
		c.awaitGate(t, 0)
		return
	}
	c.wait(t, gateRounds)
}

func (c *Controller) wait(t *member.Member, rounds int) {
	c.arrivals.change(func() { c.arrivals.late.push(lateTarget{t, rounds}, gateGrace) })
}

// awaitGate takes in a process that does not come to the gate.
func (c *Controller) awaitGate(t *member.Member, rounds int) {
	if t.State() != member.Seen {
		return
	}
	if images, err := t.Images(); err == nil && rounds > 0 && (isLoading(images) || slices.ContainsFunc(images, isDMLib)) {
		c.wait(t, rounds-1)
		return
	}
	if !t.AdmitOutside(false) {
		return
	}
	t.SetMechanism(mechanismDMLib, false, c.whyNoDMLib(t))
	c.openWays(t)
	c.changed(t)
	c.place(c.ctx, t, false)
}

// isLoading says whether the dynamic loader has not brought anything in yet: what the
// kernel maps is the program and the loader.
func isLoading(images []objfile.Image) bool { return len(images) <= 2 }

func isDMLib(image objfile.Image) bool { return image.Matches("libattune-dm*") }

// whyNoPreload says why a program cannot have DMLib preloaded, if so.
func (c *Controller) whyNoPreload(t *member.Member) string {
	if c.config.LibraryPath == "" {
		return "DMLib is not part of this build"
	}
	return objfile.Inspect(fmt.Sprintf("/proc/%d/exe", t.PID())).PreloadRefusal()
}

func (c *Controller) whyNoDMLib(t *member.Member) string {
	if why := c.whyNoPreload(t); why != "" {
		return why
	}
	return "it did not come to the start gate: LD_PRELOAD or ATTUNE_SOCKET was taken out of its environment, " +
		"it was forked by a process without DMLib, or started by one that was attached to while it ran"
}

func (c *Controller) openWays(t *member.Member) {
	if _, err := c.meter.Uprobes(); err != nil {
		t.SetMechanism(mechanismUprobe, false, err.Error())
	} else {
		t.SetMechanism(mechanismUprobe, true, "")
	}
	if err := canWrite(t.PID()); err != nil {
		t.SetMechanism(mechanismVMWrite, false, err.Error())
	} else {
		t.SetMechanism(mechanismVMWrite, true, "")
	}
}

// changed tells what is known of a process now, which may not be put off: what
// follows names it.
func (c *Controller) changed(t *member.Member) { c.outbox.TellNow(t) }
