// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Changes lists what the journals in dir say is in force on this node: those
// kept by hand, and those of controllers. Journals are read without their
// lock; changes of processes that are gone are left out.
func (k Kinds) Changes(dir string) ([]InForce, error) {
	var all []InForce
	for _, suffix := range []string{keptSuffix, journalSuffix} {
		paths, err := filepath.Glob(filepath.Join(dir, "*"+suffix))
		if err != nil {
			return nil, fmt.Errorf("list journals: %w", err)
		}
		for _, path := range paths {
			open, err := newUndos(k.Undos).openChanges(path)
			if errors.Is(err, os.ErrNotExist) {
				continue // its controller ended
			}
			if err != nil {
				return nil, err
			}
			by := ""
			if suffix == journalSuffix {
				by, _, _ = strings.Cut(filepath.Base(path), ".")
			}
			for _, r := range notOver(open) {
				all = append(all, inForce(r, by))
			}
		}
	}
	return all, nil
}

func inForce(r record, by string) InForce {
	t := r.summary()
	return InForce{
		ID: r.Change, Knob: r.Knob, PID: r.Process.PID, Since: r.Time, By: by,
		Old: t.Old, New: t.New, Where: t.Where,
	}
}

// Applied returns the ids of the changes in force, the latest first, which is
// the order to undo them in.
func (a *Actuator) Applied() []string { return a.force.ids() }

// InForce tells of the changes in force, the earliest first.
func (a *Actuator) InForce() (all []InForce) {
	for _, id := range slices.Backward(a.Applied()) {
		if one, ok := a.force.describe(id); ok {
			all = append(all, one)
		}
	}
	return all
}
