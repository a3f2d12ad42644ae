// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/controller/actuate/access"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Preview is what a change would do.
type Preview struct {
	// Old and New value in text form; where places differ, each has its own.
	Old, New string
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
		Old: shown.Old, New: shown.New, Way: p.Way, Partial: p.Partial,
		Unchanged: p.Unchanged, Undo: p.UndoError,
	}
	if preview.Old == "" && p.Old != nil {
		preview.Old = attunev1.ValueText(p.Old)
	}
	return preview, nil
}

// PreviewJoint says what a joint change would do, one for each process. They stand
// still together for a moment, and nothing is changed. Errors as those that ApplySet
// answers with.
func (a *Actuator) PreviewJoint(ctx context.Context, unit []Item) ([]Preview, error) {
	unlock := lockAll(unit)
	defer unlock()
	g, err := joint{a, unit}.gather()
	if err != nil {
		return nil, err
	}
	if _, err := g.Meet(ctx, nil); err != nil {
		return nil, err
	}
	previews := make([]Preview, len(unit))
	for i := range unit {
		part := g.Part(i)
		previews[i] = Preview{
			Old: attunev1.ValueText(part.Old), New: attunev1.ValueText(part.New),
			Way: part.How.Way, Unchanged: proto.Equal(part.Old, part.New),
		}
	}
	return previews, nil
}
