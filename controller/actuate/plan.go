// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"context"

	"github.com/attune-hpc/attune/controller/actuate/access"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Plan is an action that has been checked and can be executed.
type Plan struct {
	// Prepare makes room in the process for what run will do, and completes
	// words; nothing that the program does is changed yet. May be nil.
	Prepare func(ctx context.Context) error
	// Undo takes it back: all that is written down before anything is changed.
	Undo Undos
	// Tend is what must be done for as long as the change is in force, until ctx
	// ends; may be nil.
	Tend func(ctx context.Context)
	// Told is the change in words, where its undo does not say it.
	Told Told
	// UndoError says why it cannot be taken back; nil: it can.
	UndoError error
	// Run executes the action and says how.
	Run func(ctx context.Context) (access.Done, error)
	// Release lets go of what the plan holds until it was run; may be nil.
	Release func()
	// Old and new are the values for the answer; read gives the new one back.
	Old  *attunev1.Value
	Read func() (*attunev1.Value, error)
	// Way that is tried first.
	Way access.Way
	// Partial is what the change will not cover; empty: nothing.
	Partial string
	// Unchanged: what is asked for is there already.
	Unchanged bool
}

// Told is a change in words.
type Told struct {
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
	Way access.Way
	// Partial is what the change would not cover; empty: nothing.
	Partial string
	// Unchanged: the value asked for is there already.
	Unchanged bool
	// Undo says why it could not be taken back; nil: it can.
	Undo error
}

// Preview checks a change and reads the old value; nothing is touched or
// written down. Errors as those that Apply answers with.
func (a *Actuator) Preview(ctx context.Context, process access.Process, change *attunev1.Change) (Preview, error) {
	p, err := a.plan(ctx, process, change)
	if err != nil {
		return Preview{}, err
	}
	if p.Release != nil {
		defer p.Release()
	}
	identity := process.Identity()
	shown := record{Process: &identity, Undo: p.Undo, Told: p.Told}.summary()
	preview := Preview{
		Old: shown.Old, New: shown.New, Where: shown.Where, Way: p.Way, Partial: p.Partial,
		Unchanged: p.Unchanged, Undo: p.UndoError,
	}
	if preview.Old == "" && p.Old != nil {
		preview.Old = attunev1.ValueText(p.Old)
	}
	return preview, nil
}
