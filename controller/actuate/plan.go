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
	// Unprepare takes back what Prepare left in the process, where the change is not begun;
	// nil: nothing, or what the next one uses.
	Unprepare func(ctx context.Context) error
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

	// lineage is of the forks that take the change along; zero: none does, or it has not begun.
	lineage access.Lineage
	undone  bool // in its process: only its forks may have it
}

// unprepare takes back what was prepared, for a change that could not be begun.
func (p *Plan) unprepare(ctx context.Context) error {
	if p.Unprepare == nil {
		return nil
	}
	return p.Unprepare(context.WithoutCancel(ctx))
}
