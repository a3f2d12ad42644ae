// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/attune-hpc/attune/controller/child"
	"github.com/attune-hpc/attune/internal/beat"
	"github.com/attune-hpc/attune/internal/clock"
)

// restorePatience bounds the undoing of what controllers have left.
const restorePatience = 30 * time.Second

// journals are those of controllers of this node, and of one before. They are as
// untrusted as the processes that they are about. Its methods may be called from any
// goroutine.
type journals struct {
	dir      string
	holdTime time.Duration // for which changes that are proven good are held for the next node
	children *child.Pool
	sessions *sessions
	notes    *notes
	log      *slog.Logger
}

// present says whether there are some.
func (j *journals) present() bool {
	files, err := os.ReadDir(j.dir)
	return len(files) > 0 || err != nil && !errors.Is(err, os.ErrNotExist)
}

// restore takes back what controllers that died have left changed; held, also what was
// held for this node. left: there are some journals still.
func (j *journals) restore(ctx context.Context, held bool) (left bool) {
	if !j.present() {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, restorePatience)
	defer cancel()
	restored, err := j.children.Restore(ctx, j.dir, held)
	if err != nil {
		j.notes.trouble("restore after a controller that died: " + err.Error())
		j.log.Warn("restore after a controller that died", "error", err)
	}
	for _, r := range restored {
		j.log.Warn("change of a controller that died", "undone", r.Err == nil, "change", r.Change, "knob", r.Knob, "pid", r.PID, "error", r.Err)
	}
	return j.present()
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
