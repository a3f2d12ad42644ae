// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/attune-hpc/attune/controller/attach"
	"github.com/attune-hpc/attune/controller/track"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	// gateGrace is how long a new process may take to come to the start gate
	// before it is taken as one without DMLib: the dynamic loader runs first.
	gateGrace = 300 * time.Millisecond
	// gateRounds is how often that time is granted to a process that has
	// DMLib mapped: on a crowded node its constructor may have to wait.
	gateRounds = 10
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
	t.info = process // update clones what it is given; nobody changes this one
	t.update(process)
	if held == nil {
		t.ended.Store(true)
	}
	f.targets.add(t)
	f.publish(&attunev1.PublishRequest{Event: &attunev1.PublishRequest_ProcessStarted{ProcessStarted: t.snapshot()}})
	if held != nil {
		f.work.Go(func() { f.expect(t) })
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
	f.changed(t)
	if t.admitted.Load() && objects != len(process.GetObjects()) {
		f.placer.Refresh(t.handle)
	}
}

// Ended delivers what is left of an image and lets it go.
func (f *follower) Ended(ended *attunev1.ProcessEnded) {
	t := f.targets.remove(ended.GetProcess())
	if t == nil {
		return
	}
	t.ended.Store(true)
	f.collector.finish(t, ended)
	f.publish(&attunev1.PublishRequest{Event: &attunev1.PublishRequest_ProcessEnded{ProcessEnded: ended}})
	f.release(t)
}

// release lets go of everything that is kept about a process. It may wait for
// a tuning action under way, so it happens beside the tracker.
func (f *follower) release(t *target) {
	f.work.Go(func() {
		f.placer.Release(t.handle)
		f.sampler.Forget(t.pid)
		f.actuator.Forget(t)
		if memory := t.memory.Load(); memory != nil {
			if err := memory.Close(); err != nil {
				f.log.Debug("close memory", "pid", t.pid, "error", err)
			}
		}
	})
}

// atGate is called while a process waits in the start gate, or after a forked
// child registered. It holds a process up only if there is something to be in
// place before main.
func (c *Controller) atGate(a attach.Attachment) {
	if a.Hello.Flags&attach.Forked == 0 && c.placer.ForAll() > 0 {
		c.takeIn(a, true)
		return
	}
	c.work.Go(func() { c.takeIn(a, false) })
}

// takeIn makes a process with DMLib part of the job. held says that it waits
// in the start gate meanwhile.
func (c *Controller) takeIn(a attach.Attachment, held bool) {
	defer func() { _ = a.Pidfd.Close() }() // the tracker holds its own
	ctx, cancel := context.WithTimeout(c.ctx, attach.Timeout)
	if held {
		cancel()
		ctx, cancel = context.WithDeadline(c.ctx, a.Deadline)
	}
	defer cancel()
	t, err := c.register(ctx, a)
	if err != nil {
		c.log.Info("process not followed", "pid", a.PID, "reason", err)
		a.Memory.Detach()
		_ = a.Memory.Close()
		return
	}
	c.admit(ctx, t, held)
}

func (c *Controller) register(ctx context.Context, a attach.Attachment) (*target, error) {
	handle, err := c.tracker.Registered(ctx, a.PID)
	if err != nil {
		return nil, fmt.Errorf("track: %w", err)
	}
	t := c.targets.get(handle)
	if t == nil {
		return nil, errors.New("ended at the gate")
	}
	if !t.memory.CompareAndSwap(nil, a.Memory) {
		return nil, errors.New("registered twice")
	}
	return t, nil
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
	if c.whyNoPreload(t) != "" {
		c.awaitGate(t, 0)
		return
	}
	c.later(gateGrace, func() { c.awaitGate(t, gateRounds) })
}

// awaitGate takes in a process that does not come to the gate.
func (c *Controller) awaitGate(t *target, rounds int) {
	if !t.Alive() || t.admitted.Load() {
		return
	}
	if images, err := t.Images(); err == nil && rounds > 0 && slices.ContainsFunc(images, isDMLib) {
		c.later(gateGrace, func() { c.awaitGate(t, rounds-1) })
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
	return "it did not come to the start gate: LD_PRELOAD or ATTUNE_SOCKET was taken out of its environment, or it was forked by a process without DMLib"
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

func (c *Controller) changed(t *target) {
	c.publish(&attunev1.PublishRequest{Event: &attunev1.PublishRequest_ProcessChanged{ProcessChanged: t.snapshot()}})
}
