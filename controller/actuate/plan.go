// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"context"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// plan is an action that has been checked and can be executed.
type plan struct {
	// prepare makes room in the process for what run will do, and completes
	// words; nothing that the program does is changed yet. May be nil.
	prepare func(ctx context.Context) error
	// undo takes it back: all that is written down before anything is changed.
	undo undos
	// tend is what must be done for as long as the change is in force, until ctx
	// ends; may be nil.
	tend func(ctx context.Context)
	// told is the change in words, where its undo does not say it.
	told told
	// undoError says why it cannot be taken back; nil: it can.
	undoError error
	// run executes the action and says how.
	run func(ctx context.Context) (done, error)
	// release lets go of what the plan holds until it was run; may be nil.
	release func()
	// old and new are the values for the answer; read gives the new one back.
	old  *attunev1.Value
	read func() (*attunev1.Value, error)
	// way that is tried first.
	way Way
	// partial is what the change will not cover; empty: nothing.
	partial string
	// unchanged: what is asked for is there already.
	unchanged bool
}

// told is a change in words.
type told struct {
	Where string `json:"where"`
	Old   string `json:"old"`
	New   string `json:"new"`
}

// Preview is what a change would do.
type Preview struct {
	// Old and New value in text form; where places differ, each has its own.
	Old, New string
	// Where it would be changed, in words.
	Where string
	// Way that would be tried first.
	Way Way
	// Partial is what the change would not cover; empty: nothing.
	Partial string
	// Unchanged: the value asked for is there already.
	Unchanged bool
	// Undo says why it could not be taken back; nil: it can.
	Undo error
}

// Preview checks a change and reads the old value; nothing is touched or
// written down. Errors as those that Apply answers with.
func (a *Actuator) Preview(ctx context.Context, process Process, change *attunev1.Change) (Preview, error) {
	p, err := a.plan(ctx, process, change)
	if err != nil {
		return Preview{}, err
	}
	if p.release != nil {
		defer p.release()
	}
	identity := process.Identity()
	shown := record{Process: &identity, Undo: p.undo, Told: p.told}.summary()
	preview := Preview{
		Old: shown.Old, New: shown.New, Where: shown.Where, Way: p.way, Partial: p.partial,
		Unchanged: p.unchanged, Undo: p.undoError,
	}
	if preview.Old == "" && p.old != nil {
		preview.Old = attunev1.ValueText(p.old)
	}
	return preview, nil
}
