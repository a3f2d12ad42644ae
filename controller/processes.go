// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/attune-hpc/attune/controller/attach"
	"github.com/attune-hpc/attune/controller/entry"
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
	t := &target{
		handle: process.GetHandle(), pid: int(process.GetIdentity().GetPid()), cache: f.cache,
		identity: procid.Identity{
			BootID: process.GetIdentity().GetBootId(), PID: int(process.GetIdentity().GetPid()),
			StartTicks: process.GetIdentity().GetStartTicks(),
			ExeDevice:  process.GetIdentity().GetExeDevice(), ExeInode: process.GetIdentity().GetExeInode(),
		},
	}
	t.sites = entry.NewSites(t, f.functions)
	t.bringing = newBringing()
	t.info = process // update clones what it is given; nobody changes this one
	t.update(process)
	if held == nil {
		t.ended.Store(true)
	} else if t.outOfReach = f.foreign(t.pid); t.outOfReach != nil {
		t.admitted.Store(true) // it never will be
		f.closeWays(t)
	}
	f.targets.add(t)
	f.early.knows(f.Controller)
	f.tell(news{target: t})
	if held != nil && t.outOfReach == nil {
		settle := soon
		if f.placer.ForAll() > 0 {
			settle = 0
		}
		f.arrivals.change(func() { f.arrivals.young.push(t, settle) })
	}
}

// tell puts news into the outbox.
func (f *follower) tell(n news) {
	if f.outbox.add(n) {
		f.arrivals.change(func() { f.arrivals.news = beat.Near(time.Now().Add(soon)) })
	}
}

// Changed passes on what became known, and looks for new places to watch.
func (f *follower) Changed(process *attunev1.Process) {
	t := f.targets.get(process.GetHandle())
	if t == nil {
		return
	}
	objects := len(t.snapshot().GetObjects())
	t.update(process)
	f.outbox.changed(t)
	if t.admitted.Load() && objects != len(process.GetObjects()) {
		f.placer.Refresh(t.handle)
		if a := t.attached.Load(); a != nil {
			f.work.Go(func() { a.extend(t) })
		}
	}
}

// Ended delivers what is left of an image and lets it go.
func (f *follower) Ended(ended *attunev1.ProcessEnded) {
	f.flushUprobes() // while the process is known
	t := f.targets.remove(ended.GetProcess())
	if t == nil {
		return
	}
	t.ended.Store(true)
	f.endAtGate(t, ended.GetReplacedByExec())
	if f.records.holds(t) {
		f.outbox.flush() // what it has recorded comes before its end
	}
	f.aggregates.finish(t, ended)
	f.tell(news{target: t, ended: ended})
	f.release(t)
}

// endAtGate notes that an image has come to the gate that has ended before it
// was taken in. Its memory is let go unless the pid has another image by now,
// which may be the one that came.
func (f *follower) endAtGate(t *target, replaced bool) {
	came := replaced && f.arrivals.waiting(t.pid)
	if !replaced {
		var mine []attach.Attachment
		mine, came = f.arrivals.claim(t.pid)
		for _, a := range mine {
			f.letGo(a)
		}
	}
	if came && t.memory.Load() == nil {
		t.setMechanism(mechanismDMLib, true, "")
	}
}

// release lets go of everything that is kept about a process. It may wait for
// a tuning action under way, so it happens beside the tracker, unless the
// process was never heard of.
func (f *follower) release(t *target) {
	f.rejoin.forgets(t.handle)
	if !t.told.Load() && !t.admitted.Load() && t.memory.Load() == nil {
		f.sampler.Forget(t.pid)
		return
	}
	f.work.Go(func() {
		f.placer.Release(t.handle)
		f.sampler.Forget(t.pid)
		f.actuator.Forget(t)
		if a := t.attached.Load(); a != nil && f.config.LateLibrary {
			_ = a.process.Close() // it is closed already by whoever left it
		}
		t.sites.Forget()
		if memory := t.memory.Load(); memory != nil {
			if err := memory.Close(); err != nil {
				f.log.Debug("close memory", "pid", t.pid, "error", err)
			}
		}
	})
}

// admit places the measure points in a process with DMLib.
func (c *Controller) admit(ctx context.Context, t *target, held bool) {
	if t.admitted.Swap(true) {
		c.placer.Release(t.handle) // was taken for one without DMLib
	}
	t.setMechanism(mechanismDMLib, true, "")
	c.openWays(t)
	c.changed(t)
	c.placer.Admit(ctx, t, held)
}

// expect takes a process in that cannot come to the gate, and gives any other
// the time that it needs.
func (c *Controller) expect(t *target) {
	if c.config.LateLibrary {
		c.lateExpect(t)
		return
	}
	if !c.arrivals.waiting(t.pid) && c.whyNoPreload(t) != "" {
		c.awaitGate(t, 0)
		return
	}
	c.wait(t, gateRounds)
}

func (c *Controller) wait(t *target, rounds int) {
	c.arrivals.change(func() { c.arrivals.late.push(lateTarget{t, rounds}, gateGrace) })
}

// awaitGate takes in a process that does not come to the gate.
func (c *Controller) awaitGate(t *target, rounds int) {
	if !t.Alive() || t.admitted.Load() {
		return
	}
	if images, err := t.Images(); err == nil && rounds > 0 && (isLoading(images) || slices.ContainsFunc(images, isDMLib)) {
		c.wait(t, rounds-1)
		return
	}
	if t.admitted.Swap(true) {
		return
	}
	t.setMechanism(mechanismDMLib, false, c.whyNoDMLib(t))
	c.openWays(t)
	c.changed(t)
	c.placer.Admit(c.ctx, t, false)
}

// isLoading says whether the dynamic loader has not brought anything in yet: what the
// kernel maps is the program and the loader.
func isLoading(images []objfile.Image) bool { return len(images) <= 2 }

func isDMLib(image objfile.Image) bool { return image.Matches("libattune-dm*") }

// whyNoPreload says why a program cannot have DMLib preloaded, if so.
func (c *Controller) whyNoPreload(t *target) string {
	if c.config.LibraryPath == "" {
		return "DMLib is not part of this build"
	}
	return objfile.Inspect(fmt.Sprintf("/proc/%d/exe", t.pid)).PreloadRefusal()
}

func (c *Controller) whyNoDMLib(t *target) string {
	if why := c.whyNoPreload(t); why != "" {
		return why
	}
	return "it did not come to the start gate: LD_PRELOAD or ATTUNE_SOCKET was taken out of its environment, " +
		"it was forked by a process without DMLib, or started by one that was attached to while it ran"
}

func (c *Controller) openWays(t *target) {
	if _, err := c.uprobes(); err != nil {
		t.setMechanism(mechanismUprobe, false, err.Error())
	} else {
		t.setMechanism(mechanismUprobe, true, "")
	}
	if err := canWrite(t.pid); err != nil {
		t.setMechanism(mechanismVMWrite, false, err.Error())
	} else {
		t.setMechanism(mechanismVMWrite, true, "")
	}
}

// changed tells what is known of a process now, which may not be put off: what
// follows names it.
func (c *Controller) changed(t *target) { c.outbox.tellNow(t) }
