// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/attune-hpc/attune/internal/clock"
)

// Undo takes changes back, the latest first. One that somebody changed since
// is left as it is and dropped from the journal; one that could not be
// restored stays. Of changes that were made in ranks of a job together all are
// taken back. An error, with nothing done, for an id that there is not, or
// if a change that is to stay was made to the same thing later. An error about another
// journal comes with what was done.
func (k *Kept) Undo(ids []string) ([]Restored, error) {
	open, err := k.undos.openChanges(k.path)
	if err != nil {
		return nil, err
	}
	ids = withShared(open, ids)
	if err := undoable(open, ids); err != nil {
		return nil, err
	}
	open = slices.DeleteFunc(open, func(r record) bool { return !slices.Contains(ids, r.Change) })
	dead, above, leftErr := k.undos.left(filepath.Dir(k.path))
	for _, one := range dead {
		above = append(above, one.open...)
	}
	below := undoing{above: above}
	done := below.undo(journals{{k.Journal, open, "undone"}}, clock.SinceBoot())
	return done, errors.Join(leftErr, dead.close())
}

// UndoAll takes all changes back, and with them what controllers that no longer live have left
// behind in the same directory: the latest first, whichever journal it stands in. What living
// ones have changed is left alone.
func (k *Kept) UndoAll() ([]Restored, error) {
	open, err := k.undos.openChanges(k.path)
	dead, living, leftErr := k.undos.left(filepath.Dir(k.path))
	below := undoing{above: living}
	done := below.undo(append(slices.Clone(dead), opened{k.Journal, open, "undone"}), clock.SinceBoot())
	return done, errors.Join(err, leftErr, dead.close())
}

// withShared adds the changes that share their undo with one of those.
func withShared(open []record, ids []string) []string {
	all := slices.Clone(ids)
	for _, r := range open {
		together := func(o record) bool { return r.Undo.sharedWith(o.Undo) && slices.Contains(ids, o.Change) }
		if !slices.Contains(all, r.Change) && slices.ContainsFunc(open, together) {
			all = append(all, r.Change)
		}
	}
	return all
}

func undoable(open []record, ids []string) error {
	for _, id := range ids {
		at := slices.IndexFunc(open, func(r record) bool { return r.Change == id })
		if at < 0 {
			return fmt.Errorf("%s: %w", id, ErrUnknownChange)
		}
		for _, later := range open[at+1:] {
			if !slices.Contains(ids, later.Change) && open[at].overlaps(later) {
				return fmt.Errorf("change %s was made on top of change %s, undo it as well", later.Change, id)
			}
		}
	}
	return nil
}
