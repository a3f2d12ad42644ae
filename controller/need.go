// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/inject"
	"github.com/attune-hpc/attune/controller/member"
	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	// needAge is how old a process is at least when DMLib is brought into it for
	// its measure points: for one that ends before it would not pay.
	needAge = 500 * time.Millisecond
	// needTries bounds the attempts, needPause follows one in vain: a process
	// that is stopped, or whose threads all wait in the kernel, may go on.
	needTries = 5
	needPause = 5 * time.Second
	// needTimeout bounds how long an action waits for DMLib, and how long a
	// process may take to be taken in that DMLib was brought into.
	needTimeout = 5 * time.Second
)

// bringing is the way of DMLib into a process that came without.
type bringing struct {
	once  chan struct{} // holds a token: whoever has it tries
	done  bool          // there is nothing to try any more; guarded by the token
	asked atomic.Int32  // calls of need that are not answered yet; one goroutine answers them
}

func newBringing() *bringing {
	b := &bringing{once: make(chan struct{}, 1)}
	b.once <- struct{}{}
	return b
}

// errNotNeeded is the reason why DMLib is not in a process.
var errNotNeeded = errors.New("nothing has needed it so far")

// lateExpect takes a process in from outside: DMLib comes when it is needed. One
// that has it from its start comes to the gate; what an earlier controller left
// in an old one does not.
func (c *Controller) lateExpect(t *member.Member) {
	if c.arrivals.waiting(t.PID()) {
		c.wait(t, gateRounds)
		return
	}
	if images, err := t.Images(); err == nil && slices.ContainsFunc(images, isDMLib) && t.Age() < gateGrace {
		c.wait(t, gateRounds)
		return
	}
	if !t.AdmitOutside(true) {
		return
	}
	t.SetMechanism(mechanismDMLib, false, errNotNeeded.Error())
	c.openWays(t)
	c.changed(t)
	c.place(c.ctx, t, false)
	c.need(t)
}

// need brings DMLib into a process for its measure points, when it is old
// enough and if there are any. However many points ask for it, the attempts are
// those of one.
func (c *Controller) need(t *member.Member) {
	asking := &c.bringing.Of(t).asked
	if !c.config.LateLibrary || asking.Add(1) > 1 {
		return
	}
	c.work.Go(func() {
		for {
			asked := asking.Load()
			c.bringInForPoints(t)
			if asking.CompareAndSwap(asked, 0) {
				return
			}
		}
	})
}

func (c *Controller) bringInForPoints(t *member.Member) {
	pause := needAge - t.Age()
	for range needTries {
		select {
		case <-c.ctx.Done():
			return
		case <-time.After(pause):
		}
		if !c.wantsLibrary(t) {
			return
		}
		if c.bringIn(c.ctx, t) {
			break
		}
		pause = needPause
	}
	c.withoutLibrary(t)
}

// withoutLibrary has it told which points are not served where DMLib does not come.
func (c *Controller) withoutLibrary(t *member.Member) {
	if t.GiveUpLibrary() {
		c.placer.Refresh(t.Handle())
	}
}

// needAll is need for all processes: there is a new measure point.
func (c *Controller) needAll(spec *attunev1.MeasurePoint) {
	if spec.GetUsdt() != nil {
		return
	}
	for _, t := range c.members.List() {
		if state := t.State(); state == member.Outside || state == member.Awaiting {
			c.need(t)
		}
	}
}

// wantsLibrary says whether DMLib would serve a point in a process.
func (c *Controller) wantsLibrary(t *member.Member) bool {
	return t.Alive() && t.Memory() == nil && c.placer.WantsLibrary(t.Handle())
}

// bringIn has DMLib in a process if that is possible, and reports whether there
// is nothing to try any more. Of several goroutines one tries, and the others
// wait for it.
func (c *Controller) bringIn(ctx context.Context, t *member.Member) (done bool) {
	bringing := c.bringing.Of(t)
	if !c.config.LateLibrary {
		return true
	}
	select {
	case <-bringing.once:
	case <-ctx.Done():
		return false
	}
	defer func() { bringing.once <- struct{}{} }()
	if bringing.done || t.Memory() != nil || !t.Alive() {
		return true
	}
	err := c.enterLate(ctx, t)
	switch {
	case err == nil:
		bringing.done = c.awaitMemory(ctx, t)
	case errors.Is(err, inject.ErrNoSafePoint), ctx.Err() != nil:
	default:
		bringing.done = true
	}
	if err != nil && t.Alive() {
		c.log.Info("DMLib is not brought in", "pid", t.PID(), "reason", err, "again", !bringing.done)
		t.SetMechanism(mechanismDMLib, false, err.Error())
		c.changed(t)
	}
	return bringing.done
}

// enterLate injects DMLib into the process that a target is.
func (c *Controller) enterLate(ctx context.Context, t *member.Member) error {
	process, err := procid.Open(t.PID())
	if err != nil {
		return err
	}
	if process.Identity() != t.Identity() {
		return errors.Join(fmt.Errorf("pid %d: %w", t.PID(), procid.GoneError(unix.ESRCH)), process.Close())
	}
	a := &Attached{controller: c, process: process, handle: t.Handle()}
	if a.Injection, err = c.enter(ctx, process, t.Handle()); err != nil {
		return errors.Join(err, process.Close())
	}
	if a.Injection.Memory == nil {
		return process.Close() // it has come to the gate by itself
	}
	if before := c.attached.Of(t).Swap(a); before != nil {
		_ = before.process.Close() // it was not taken in
	}
	if !t.Alive() {
		_ = process.Close() // whoever let go of the target has perhaps not seen it
	}
	c.log.Info("DMLib brought in", "pid", t.PID(), "thread", a.Injection.Thread, "stopped", a.Injection.Stopped,
		"loaded", a.Injection.Loaded, "slots", len(a.Injection.Slots))
	return nil
}

// awaitMemory waits until a process that was entered is taken in; false if it is
// not, as on a node that is too busy to find out about it.
func (c *Controller) awaitMemory(ctx context.Context, t *member.Member) bool {
	ctx, cancel := context.WithTimeout(ctx, needTimeout)
	defer cancel()
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	for t.Memory() == nil && t.Alive() {
		select {
		case <-ctx.Done():
			return false
		case <-poll.C:
		}
	}
	return true
}

// leaveEntered gives processes that DMLib was brought into their calls back, as
// far as they come to a hook before ctx ends.
func (c *Controller) leaveEntered(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, leavePatience)
	defer cancel()
	var all sync.WaitGroup
	for _, t := range c.members.List() {
		if a := c.attached.Of(t).Load(); a != nil && c.config.LateLibrary {
			all.Go(func() { c.log.Debug("process is left", "pid", t.PID(), "slots_stayed", a.Leave(ctx)) })
		}
	}
	all.Wait()
}

// leavePatience bounds how long all processes have at the end to come to a hook.
const leavePatience = 500 * time.Millisecond
