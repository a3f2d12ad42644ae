// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/inject"
	"github.com/attune-hpc/attune/controller/member"
	"github.com/attune-hpc/attune/internal/beat"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	// needAge is how old a process is at least when DMLib is brought into it for
	// its measure points: for one that ends before it would not pay.
	needAge = 500 * time.Millisecond
	// needTries bounds the attempts, needPause follows one in vain: a process whose threads
	// all wait in the kernel may go on. One that is stopped or traced is looked at for as long
	// as it is, first after shortPause, then after twice the pause each time up to longPause.
	needTries  = 5
	needPause  = 5 * time.Second
	shortPause = time.Second
	longPause  = time.Minute
	// needTimeout bounds how long an action waits for DMLib, and how long a
	// process may take to be taken in that DMLib was brought into.
	needTimeout = 5 * time.Second
	// childRounds is how often one waits for a process that has DMLib from its parent or
	// its start: if it comes to the gate later, it changes over.
	childRounds = 1
)

// library brings DMLib into processes that came without it, when it is needed.
type library struct {
	ways
	arrivals *arrivals
	entering *entering
}

// errNotNeeded is the reason why DMLib is not in a process.
var errNotNeeded = errors.New("nothing has needed it so far")

// expect takes a process in from outside: DMLib comes when it is needed. One
// that has it from its start comes to the gate; what an earlier controller left
// in an old one does not.
func (l *library) expect(t *member.Member) {
	if l.arrivals.waiting(t.PID()) {
		l.arrivals.wait(t, gateRounds)
		return
	}
	if images, err := t.Images(); err == nil && slices.ContainsFunc(images, isDMLib) && t.Age() < gateGrace {
		l.arrivals.wait(t, childRounds)
		return
	}
	l.takeOutside(t)
}

// takeOutside takes a process in without DMLib, which may come when it is needed.
func (l *library) takeOutside(t *member.Member) {
	if l.outside(t, true, errNotNeeded.Error()) {
		l.need(t)
	}
}

// need brings DMLib into a process for its measure points, when it is old
// enough and if there are any. However many points ask for it, the attempts are
// those of one.
func (l *library) need(t *member.Member) {
	asking := &l.entering.bringing.Of(t).asked
	if !l.LateLibrary || asking.Add(1) > 1 {
		return
	}
	l.Go(func() {
		for {
			asked := asking.Load()
			l.bringInForPoints(t)
			if asking.CompareAndSwap(asked, 0) {
				return
			}
		}
	})
}

func (l *library) bringInForPoints(t *member.Member) {
	pause := needAge - t.Age()
	for tries := 0; tries < needTries; {
		if !beat.Pause(l.Context, pause) || !l.wantsLibrary(t) {
			return
		}
		again := l.bringIn(l.Context, t)
		switch {
		case again == nil:
			l.withoutLibrary(t)
			return
		case errors.Is(again, inject.ErrForNow):
			l.withoutLibrary(t) // until it comes
			pause = min(max(shortPause, 2*pause), longPause)
		default:
			tries++
			pause = needPause
		}
	}
	l.withoutLibrary(t)
}

// withoutLibrary has it told which points are not served where DMLib does not come.
func (l *library) withoutLibrary(t *member.Member) {
	if t.GiveUpLibrary() {
		l.Placer.Refresh(t.Handle())
	}
}

// needAll is need for all processes: there is a new measure point.
func (l *library) needAll(spec *attunev1.MeasurePoint) {
	if spec.GetUsdt() != nil {
		return
	}
	for _, t := range l.Members.List() {
		if state := t.State(); state == member.Outside || state == member.Awaiting {
			l.need(t)
		}
	}
}

// wantsLibrary says whether DMLib would serve a point in a process.
func (l *library) wantsLibrary(t *member.Member) bool {
	return t.Alive() && t.Memory() == nil && l.Placer.WantsLibrary(t.Handle())
}

// bringIn has DMLib in a process if that is possible, and returns why it is to be tried
// again; nil: there is nothing to try any more. Of several goroutines one tries, and the
// others wait for it.
func (l *library) bringIn(ctx context.Context, t *member.Member) (again error) {
	bringing := l.entering.bringing.Of(t)
	if !l.LateLibrary {
		return nil
	}
	select {
	case <-bringing.once:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { bringing.once <- struct{}{} }()
	if bringing.done || t.Memory() != nil || !t.Alive() {
		return nil
	}
	err := l.enterLate(ctx, t)
	switch {
	case err == nil:
		again = l.awaitMemory(ctx, t)
	case passes(err) || ctx.Err() != nil:
		again = err
	}
	bringing.done = again == nil
	if err != nil && t.Alive() && t.WithoutDMLib() != err.Error() {
		l.Log.Info("DMLib is not brought in", "pid", t.PID(), "reason", err, "again", !bringing.done)
		t.SetMechanism(member.MechanismDMLib, false, err.Error())
		l.Outbox.TellNow(t)
	}
	return again
}

// passes says whether what DMLib could not be brought in for may be over the next time.
func passes(err error) bool {
	return errors.Is(err, inject.ErrForNow) || errors.Is(err, inject.ErrNoSafePoint) || errors.Is(err, inject.ErrHeld)
}

// enterLate injects DMLib into the process that a target is.
func (l *library) enterLate(ctx context.Context, t *member.Member) error {
	process, err := procid.Open(t.PID())
	if err != nil {
		return err
	}
	if !process.Identity().SameImage(t.Identity()) {
		return errors.Join(fmt.Errorf("pid %d: %w", t.PID(), procid.GoneError(unix.ESRCH)), process.Close())
	}
	a := &Attached{entering: l.entering, process: process, handle: t.Handle(), late: true}
	if a.Injection, err = l.entering.enter(ctx, process, t.Handle()); err != nil {
		return errors.Join(err, process.Close())
	}
	if a.Injection.Memory == nil {
		return process.Close() // it has come to the gate by itself
	}
	if before := l.entering.attached.Of(t).Swap(a); before != nil {
		_ = before.process.Close() // it was not taken in
	}
	if !t.Alive() {
		_ = process.Close() // whoever let go of the target has perhaps not seen it
	}
	l.Log.Info("DMLib brought in", "pid", t.PID(), "thread", a.Injection.Thread, "stopped", a.Injection.Stopped,
		"loaded", a.Injection.Loaded, "slots", len(a.Injection.Slots))
	l.Entered(t.PID())
	return nil
}

// awaitMemory waits until a process that was entered is taken in; an error if it is
// not, as on a node that is too busy to find out about it.
func (l *library) awaitMemory(ctx context.Context, t *member.Member) error {
	ctx, cancel := context.WithTimeout(ctx, needTimeout)
	defer cancel()
	for t.Memory() == nil && t.Alive() {
		if !beat.Pause(ctx, time.Millisecond) {
			return ctx.Err()
		}
	}
	return nil
}

// leaveEntered gives processes that DMLib was brought into their calls back, as
// far as they come to a hook before ctx ends.
func (l *library) leaveEntered(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, leavePatience)
	defer cancel()
	var all sync.WaitGroup
	for _, t := range l.Members.List() {
		if a := l.entering.attached.Of(t).Load(); a != nil && a.late {
			all.Go(func() { l.Log.Debug("process is left", "pid", t.PID(), "slots_stayed", a.Leave(ctx)) })
		}
	}
	all.Wait()
}

// leavePatience bounds how long all processes have at the end to come to a hook.
const leavePatience = 500 * time.Millisecond

func isDMLib(image objfile.Image) bool { return image.Matches("libattune-dm*") }
