// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"errors"
	"time"

	"github.com/attune-hpc/attune/controller/inject"
	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/internal/beat"
	"github.com/attune-hpc/attune/internal/proc"
	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	// firstPause lies before a point is tried again whose process was busy or stood still, twice
	// as long before each time after, up to lastPause: all threads stand still at each.
	firstPause = time.Second
	lastPause  = time.Minute
	// whyAgain is added to the reason.
	whyAgain = "; this is tried again"
)

// refusal is of a point that is not in the process, as it was told.
type refusal struct {
	spec   *attunev1.MeasurePoint
	passes bool // why may pass, so that it may be served later
}

// retry is when points are tried again. It is guarded by tenant.mu.
type retry struct {
	waiting bool
	pause   time.Duration // before the last time
}

// passingError is a refusal of all mechanisms, for one of which it may pass.
type passingError struct{ error }

func (passingError) Is(target error) bool { return target == proc.ErrBusy }

// after calls again after a pause that is longer each time, and when the process does not stand
// still, unless it is about to. It returns at once. The caller holds tenant.mu.
func (r *retry) after(w *work, process Process, again func()) {
	if r.waiting {
		return
	}
	r.waiting, r.pause = true, min(max(firstPause, 2*r.pause), lastPause)
	pause := r.pause
	w.begin(func() {
		for beat.Pause(w.ctx, pause) {
			if !stands(process) {
				again()
				return
			}
			pause = min(2*pause, lastPause)
		}
	})
}

// stands says whether a process is stopped, and comes to no safe point until it goes on.
func stands(process Process) bool {
	stat, err := procid.ReadStat(process.PID())
	return err == nil && (stat.State == 'T' || stat.State == 't') && process.Alive() // else it is another's pid
}

// isBusy says whether a point failed because the process was busy.
func isBusy(err error) bool { return errors.Is(err, proc.ErrBusy) }

// passes says whether why a point was refused may pass: its process was busy, or came to no
// safe point, as one that is stopped.
func passes(err error) bool {
	return isBusy(err) || errors.Is(err, shm.ErrNoSafePoint) || errors.Is(err, inject.ErrForNow)
}
