// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/attune-hpc/attune/controller/gate"
	"github.com/attune-hpc/attune/controller/inject"
	"github.com/attune-hpc/attune/controller/member"
	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/controller/track"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/peercred"
	"github.com/attune-hpc/attune/internal/proc"
	"github.com/attune-hpc/attune/internal/procid"
)

// door is what happens at the start gate.
type door struct {
	ways
	arrivals *arrivals
	early    *early
	tracker  *track.Tracker
}

// letGo frees what an attachment holds; DMLib goes inert if it is still there.
func (d *door) letGo(a gate.Attachment) {
	if err := errors.Join(a.Memory.Close(), a.Pidfd.Close()); err != nil {
		d.Log.Debug("close attachment", "pid", a.PID, "error", err)
	}
}

// holds says whether a process has to wait at the gate: for points that are to
// be in place before main, or for the tracker to know of it, which otherwise
// could miss what it starts first.
func (d *door) holds(peer peercred.Peer) bool {
	if d.Placer.ForAll() > 0 || !d.follows(peer.PID) {
		return true
	}
	d.arrivals.greet(peer.PID)
	return false
}

// follows says whether nothing of what a process starts will be missed.
func (d *door) follows(pid int) bool { return d.Members.Has(pid) || d.tracker.Follows(pid) }

// atGate is called while a process waits in the start gate, after it was let
// through, or after a forked child registered. A process that does not wait is
// taken in when it has settled.
func (d *door) atGate(a gate.Attachment) {
	if !a.Deadline.IsZero() {
		d.takeIn(a, true)
		return
	}
	d.arrivals.attach(a)
}

// refused notes who did not get through the gate.
func (d *door) refused(r gate.Refusal) {
	d.arrivals.part(r.Peer.PID)
	if errors.Is(r.Err, procid.ErrGone) {
		d.tooLate(r.Peer.PID)
		return
	}
	d.Log.Warn("process not instrumented", "pid", r.Peer.PID, "uid", r.Peer.UID, "reason", r.Err)
}

// takeIn makes a process with DMLib part of the job. held says that it waits
// in the start gate meanwhile, for as long as it does: where it goes on before the
// tracker has time for it, as on a crowded node, its points come later.
func (d *door) takeIn(a gate.Attachment, held bool) {
	defer func() { _ = a.Pidfd.Close() }() // the tracker holds its own
	t, err := d.register(d.Context, a)
	if err != nil {
		d.Log.Info("process not followed", "pid", a.PID, "reason", err)
		d.tooLate(a.PID)
		a.Memory.Detach()
		_ = a.Memory.Close()
		return
	}
	switch {
	case !held:
		d.inside(d.Context, t, false) // nobody waits: each point has the time that it may take
	case d.Placer.ForAll() == 0:
		d.Go(func() { d.inside(d.Context, t, false) }) // it waited for register alone
	default:
		ctx, cancel := context.WithDeadline(d.Context, a.Deadline)
		defer cancel()
		d.inside(ctx, t, true)
	}
}

// tooLate notes of a process that is ending, which the tracker has not told
// yet, that it had come to the gate.
func (d *door) tooLate(pid int) {
	if t := d.Members.OfPID(pid); t != nil && t.State() == member.Seen {
		t.SetMechanism(member.MechanismDMLib, true, "")
		d.Outbox.Changed(t)
	}
}

var errOtherImage = errors.New("it has ended, or runs another program by now")

func (d *door) register(ctx context.Context, a gate.Attachment) (*member.Member, error) {
	if !sameImage(a) {
		return nil, errOtherImage
	}
	if a.Hello.Flags&gate.Early != 0 && !d.follows(a.PID) {
		d.early.strange()
	}
	handle, err := d.tracker.Registered(ctx, a.PID)
	if err != nil {
		return nil, fmt.Errorf("track: %w", err)
	}
	if !sameImage(a) { // the tracker may have been busy for long
		return nil, errOtherImage
	}
	t := d.Members.Get(handle)
	if t == nil {
		return nil, errors.New("ended at the gate")
	}
	a.Memory.SetAttendant(d.attendant(t))
	a.Memory.SetGuard(confinement(a))
	a.Memory.SetNurse(d.nurse(a))
	if err := t.Register(a.Memory); err != nil {
		return nil, err
	}
	return t, nil
}

// confinement is the guard of a process's commands: what counts are the seccomp
// filters since DMLib came in. One that came early may have run for a while: it had those of
// this process, which comes from the same parent.
func confinement(a gate.Attachment) func() error {
	if a.Hello.Flags&gate.Unfiltered != 0 {
		return inject.Confinement(a.PID, procid.Status{})
	}
	model := a.PID
	if a.Hello.Flags&gate.Early != 0 {
		model = os.Getpid()
	}
	before, err := procid.ReadStatus(model)
	if err != nil {
		return nil // it has ended
	}
	return inject.Confinement(a.PID, before)
}

// sameImage says whether the process still has DMLib where it was when it came
// to the gate: an exec, or another process with its pid, has not. One that came
// early may have executed another program since, with DMLib at the same place: it
// must have the very memory file.
func sameImage(a gate.Attachment) bool {
	if a.Hello.Flags&gate.Early != 0 {
		mappings, err := objfile.Mappings(a.PID)
		return err == nil && slices.ContainsFunc(mappings, func(m objfile.Mapping) bool {
			return m.Inode == a.Memory.Inode() && m.Path == "/memfd:"+shm.FileName
		})
	}
	image, err := proc.Open(a.PID)
	if err != nil {
		return errors.Is(err, proc.ErrPermission)
	}
	defer image.Close()
	head := make([]byte, len(elf.ELFMAG))
	return image.Read(a.Memory.App().Base, head) == nil && string(head) == elf.ELFMAG
}

const (
	// attendPatience bounds the search for a thread that can be stopped: those
	// that stand in a system call which could not be restarted are let be.
	attendPatience = 300 * time.Millisecond
	// attendTimeout bounds what it executes, a few system calls.
	attendTimeout = time.Second
)

// attendant returns who stops a thread of a process that comes by no hook, for
// the commands that wait in its mailbox.
func (w ways) attendant(t *member.Member) shm.Attendant {
	return func(ctx context.Context, entry uint64) (uint64, time.Duration, error) {
		process, err := t.Hold()
		if err != nil {
			return 0, 0, err
		}
		value, result, err := inject.Execute(ctx, process, inject.Calling(entry), inject.ExecuteOptions{
			Anywhere: true, Patience: attendPatience, Timeout: attendTimeout, Cache: w.Cache,
		})
		stopped := result.Stopped + result.Disturbed
		if err != nil {
			return 0, stopped, fmt.Errorf("stop a thread for it: %w", err)
		}
		w.Log.Debug("a thread was stopped for what waited in the mailbox", "pid", t.PID(), "thread", result.Thread, "stopped", stopped)
		return value, stopped, nil
	}
}
