// SPDX-License-Identifier: Apache-2.0

package system

import (
	"errors"
	"fmt"
	"os"

	"github.com/attune-hpc/attune/internal/confine"
	"github.com/attune-hpc/attune/internal/procid"
)

// Everywhere means every thread, socket or pipe that a knob applies to.
const Everywhere = -1

// Target is a process that is held by a pidfd while it is changed.
type Target struct {
	process *procid.Process
	// inJob says which processes may share a cgroup that is changed.
	inJob func(pid int) bool
}

// Open takes hold of a process and checks that it is the one meant.
// [procid.ErrGone] if it has ended. The caller calls Close.
func Open(identity procid.Identity) (*Target, error) {
	process, err := procid.Hold(identity)
	if err != nil {
		return nil, err
	}
	return &Target{process: process}, nil
}

// Close lets go of the process.
func (t *Target) Close() error { return t.process.Close() }

func (t *Target) pid() int { return t.process.PID() }

// Allowed says why this user may not change the process: it must be their own,
// unless they are root. Kernel threads belong to nobody.
func (t *Target) Allowed() error {
	stat, err := procid.ReadStat(t.pid())
	if err != nil {
		return err
	}
	if stat.Kernel {
		return errors.New("it is a kernel thread")
	}
	if os.Geteuid() == 0 {
		return nil
	}
	status, err := procid.ReadStatus(t.pid())
	if err != nil {
		return err
	}
	return t.owned(status.Users)
}

// owned wants the real, effective and saved user ids to be ours.
func (t *Target) owned(ids procid.IDs) error {
	for _, id := range []uint32{ids.Real, ids.Effective, ids.Saved} {
		if id != uint32(os.Geteuid()) {
			return fmt.Errorf("the process belongs to user %d; only its owner and root may change it", id)
		}
	}
	return nil
}

// threads lists the threads with their start times. Threads that end while
// they are listed are left out.
func (t *Target) threads() ([]Place, error) {
	tids, _, err := procid.AllThreads(t.pid())
	if err != nil {
		return nil, err
	}
	places := make([]Place, 0, len(tids))
	for _, tid := range tids {
		if started, err := t.threadStart(tid); err == nil {
			places = append(places, Place{Scope: OnThreads, Number: tid, Started: started})
		}
	}
	if len(places) == 0 {
		return nil, procid.ErrGone
	}
	return places, nil
}

// threadStart is when a live thread of the process started, in clock ticks.
func (t *Target) threadStart(tid int) (uint64, error) {
	stat, err := procid.ReadThreadStat(t.pid(), tid)
	if err != nil {
		return 0, err
	}
	if stat.State == 'Z' || stat.State == 'X' {
		return 0, procid.ErrGone // as the first thread may be, with others going on
	}
	return stat.StartTicks, nil
}

// capable says whether this process has a capability in effect. In a user
// namespace it may be of no use for the target: then the kernel refuses.
func capable(capability uintptr) bool {
	held, err := confine.Effective()
	return err == nil && held.Has(capability)
}
