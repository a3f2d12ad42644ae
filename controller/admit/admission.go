// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"context"
	"fmt"
	"time"

	"github.com/attune-hpc/attune/controller/gate"
	"github.com/attune-hpc/attune/controller/member"
	"github.com/attune-hpc/attune/controller/track"
	"github.com/attune-hpc/attune/internal/peercred"
	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Admission is how processes become members.
type Admission struct {
	*Options
	gate       *gate.Gate
	tracker    *track.Tracker
	arrivals   *arrivals
	early      *early
	door       *door
	entering   *entering
	library    *library
	settling   *settling
	refreshing *refreshing
	children   *children
}

// New returns an Admission at whose gate programs may wait as soon as it returns. The
// caller calls Close.
func New(options Options) (a *Admission, err error) {
	o := &options
	o.began = time.Now()
	a = &Admission{
		Options: o, arrivals: newArrivals(), refreshing: &refreshing{Options: o},
		early: &early{points: o.Placer.ForAll, log: o.Log},
	}
	a.door = &door{ways: ways{o}, arrivals: a.arrivals, early: a.early}
	a.entering = &entering{ways: ways{o}, foreign: o.Rights.Foreign, arrivals: a.arrivals, door: a.door}
	a.children = &children{ways: ways{o}}
	a.library = &library{ways: ways{o}, arrivals: a.arrivals, entering: a.entering}
	a.entering.bringing.Make = newBringing
	a.settling = &settling{ways: ways{o}, arrivals: a.arrivals, door: a.door, library: a.library}
	o.Members.OnLeave(func(t *member.Member) { o.Placer.Release(t.Handle()) })
	o.Members.OnLeave(a.entering.leave)
	a.tracker, err = track.New(track.Options{
		JobID: o.JobID, Source: o.Source, PollInterval: o.LookInterval, Digests: o.Digests, Readers: o.Readers, Log: o.Log,
		Handler: &follower{
			ways: ways{o}, arrivals: a.arrivals, early: a.early, door: a.door, entering: a.entering,
		},
	})
	if err != nil {
		return nil, err
	}
	if a.gate, err = gate.New(gateOptions(o, a.door)); err != nil {
		return nil, err
	}
	a.early.tracker, a.early.gate, a.door.tracker, a.entering.tracker = a.tracker, a.gate, a.tracker, a.tracker
	return a, nil
}

// othersSocket is the mode of a gate for another user's processes, whom the
// kernel names at each connection.
const othersSocket = 0o666

// gateOptions let the user in whose processes are followed.
func gateOptions(o *Options, d *door) gate.Options {
	g := gate.Options{
		Path: o.GatePath, Early: o.EarlyGate, Attached: d.atGate, Hold: d.holds, Refused: d.refused,
		Timeout: o.GateTimeout, Log: o.Log,
	}
	if user := o.Rights.User; user != nil {
		g.Mode = othersSocket
		g.Admit = func(p peercred.Peer) error {
			if p.UID != int(user.GetUid()) {
				return fmt.Errorf("%w: user %d is not the session's %d", gate.ErrNotAdmitted, p.UID, user.GetUid())
			}
			return nil
		}
	}
	return g
}

// Close closes the gate, and lets all go that were not taken in.
func (a *Admission) Close() error {
	err := a.gate.Close()
	a.arrivals.release(a.door.letGo)
	return err
}

// Serve serves the gate until ctx ends.
func (a *Admission) Serve(ctx context.Context) error { return a.gate.Serve(ctx) }

// Settle looks at young processes, and has their news told, until ctx ends.
func (a *Admission) Settle(ctx context.Context) error { return a.settling.run(ctx) }

// Nurse lets forked children register until ctx ends.
func (a *Admission) Nurse(ctx context.Context) error { return a.children.run(ctx) }

// Track follows processes until ctx ends, and tells what has happened by then.
func (a *Admission) Track(ctx context.Context) error { return a.tracker.Run(ctx) }

// Hurry has news told at once. It does not wait for that.
func (a *Admission) Hurry() { a.arrivals.tell(time.Now()) }

// Follow makes a process, with all that it forks, part of the job.
func (a *Admission) Follow(ctx context.Context, pid int) error {
	_, err := a.tracker.Follow(ctx, pid)
	return err
}

// FollowProcess is Follow for a process that is held, which may have ended.
func (a *Admission) FollowProcess(ctx context.Context, process *procid.Process) error {
	_, err := a.tracker.FollowProcess(ctx, process)
	return err
}

// Attach brings a running process, with all that it forks, under control: it
// is followed, and DMLib is injected into it where that is possible, or later if it is
// needed then. The error says why the process cannot even be followed. The caller calls Leave before
// Close.
func (a *Admission) Attach(ctx context.Context, pid int) (*Attached, error) {
	attached, err := a.entering.attach(ctx, pid)
	if err == nil && attached.Later() {
		if m := a.Members.Get(attached.handle); m != nil {
			a.library.need(m)
		}
	}
	return attached, err
}

// Hold adds a measure point that is to be in place before main. Once it can be seen,
// no new process runs past the gate.
func (a *Admission) Hold(add func()) { a.early.holds(add) }

// Free lets new processes run past the gate if nothing has to be in place any more.
func (a *Admission) Free() { a.early.lets() }

// Need brings DMLib into the processes that came without it, for a new measure point.
// It does not wait.
func (a *Admission) Need(spec *attunev1.MeasurePoint) { a.library.needAll(spec) }

// BringIn has DMLib in a process if that is possible, before ctx ends.
func (a *Admission) BringIn(ctx context.Context, m *member.Member) { _ = a.library.bringIn(ctx, m) }

// Leave gives processes that DMLib was brought into their calls back, as far as they
// come to a hook before ctx ends.
func (a *Admission) Leave(ctx context.Context) { a.library.leaveEntered(ctx) }

// Refresh looks for libraries that were loaded again, and has them patched. It
// returns how many processes that is under way in.
func (a *Admission) Refresh() (waiting int) { return a.refreshing.refresh() }
