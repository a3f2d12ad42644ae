// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/child"
	"github.com/attune-hpc/attune/internal/beat"
	"github.com/attune-hpc/attune/internal/clock"
)

const (
	// restorePatience bounds the undoing of what controllers have left.
	restorePatience = 30 * time.Second
	// owedInterval is when what could not be undone is tried again; after each try that
	// failed it doubles, up to owedMost.
	owedInterval = 30 * time.Second
	owedMost     = 5 * time.Minute
)

// restorer undoes what journals have in processes of its own; [child.Pool] is one.
type restorer interface {
	Restore(ctx context.Context, dir string, held bool) ([]child.Restored, error)
	Guard(ctx context.Context, dir string, until time.Duration) error
}

// journals are those of controllers of this node, and of one before. They are as
// untrusted as the processes that they are about. Its methods may be called from any
// goroutine.
type journals struct {
	dir      string
	holdTime time.Duration // for which changes that are proven good are held for the next node
	children restorer
	sessions *sessions
	notes    *notes
	log      *slog.Logger
	// owed says that something could not be undone, and owedHeld that what was held for
	// this node was to be.
	owed, owedHeld atomic.Bool
}

// present says whether there are some that can be restored.
func (j *journals) present() bool {
	some, err := actuate.HasJournals(j.dir)
	return some || err != nil
}

// removeOld removes those of earlier boots.
func (j *journals) removeOld() {
	if err := actuate.RemoveOld(j.dir); err != nil {
		j.log.Warn("journals of earlier boots stay", "error", err)
	}
}

// restore takes back what controllers that died have left changed; held, also what was
// held for this node. left: there are some journals still.
func (j *journals) restore(ctx context.Context, held bool) (left bool) {
	if !j.present() {
		return false
	}
	if err := j.tryRestore(ctx, held, slog.LevelWarn); err != nil {
		j.notes.trouble("restore after a controller that died: " + err.Error())
	}
	return j.present()
}

// tryRestore is restore once. It logs what could not be undone, at a level, and leaves it to
// restoreOwed.
func (j *journals) tryRestore(ctx context.Context, held bool, failed slog.Level) error {
	ctx, cancel := context.WithTimeout(ctx, restorePatience)
	defer cancel()
	restored, err := j.children.Restore(ctx, j.dir, held)
	owed := err != nil
	if err != nil {
		j.log.Log(ctx, failed, "restore after a controller that died", "error", err)
	}
	for _, r := range restored {
		level := slog.LevelWarn
		if r.Error != "" {
			level, owed = failed, true
		}
		if r.Change == "" {
			j.log.Log(ctx, level, "journals could not be read or written", "error", r.Error)
			continue
		}
		j.log.Log(ctx, level, "change of a controller that died", "undone", r.Error == "", "change", r.Change, "knob", r.Knob, "pid", r.PID, "error", r.Error)
	}
	if owed {
		if held {
			j.owedHeld.Store(true)
		}
		j.owed.Store(true)
	}
	return err
}

// restoreOwed tries again, until ctx ends, what could not be undone: a process that is
// stopped runs on some time. Most of what can never be undone has left its journal by then;
// what another version of Attune has written stays as long as its process.
func (j *journals) restoreOwed(ctx context.Context) {
	for pause := owedInterval; beat.Pause(ctx, pause); {
		if !j.owed.Swap(false) { // before the try: another one may fail meanwhile
			pause = owedInterval
			continue
		}
		_ = j.tryRestore(ctx, j.owedHeld.Swap(false), slog.LevelDebug) // told at the first try
		pause = min(2*pause, owedMost)
	}
}

// hold has the sessions that end from now on with the node hold what is proven good for
// the next one; false if nobody would undo that in case none comes.
func (j *journals) hold(ctx context.Context) bool {
	if !j.present() {
		return false
	}
	until := clock.SinceBoot() + j.holdTime
	if err := j.children.Guard(ctx, j.dir, until); err != nil {
		j.log.Error("changes are undone that the next attuned could have taken over", "error", err)
		return false
	}
	j.sessions.heldUntil.Store(int64(until))
	return true
}

// seeToHeld undoes what an earlier node holds and this one does not take over: when no
// node has held it for longer, or as soon as Attune is switched off.
func (j *journals) seeToHeld(ctx context.Context) {
	for end := clock.SinceBoot() + MaxHold + lookInterval; beat.Pause(ctx, lookInterval); {
		_, off := j.sessions.switchedOff()
		if off || clock.SinceBoot() > end {
			j.restore(ctx, off)
			return
		}
	}
}
