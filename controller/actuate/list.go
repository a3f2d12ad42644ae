// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/attune-hpc/attune/controller/actuate/access"
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
			for _, r := range open {
				if !over(r) {
					all = append(all, inForce(r, by))
				}
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

// ByProcess returns changes of a list apart for each process, in their order. What is not
// in force any more it leaves out.
func ByProcess(a *Actuator, ids []string) (all [][]string) {
	at := make(map[access.Process]int)
	for _, id := range ids {
		change := a.force.find(id)
		if change == nil {
			continue
		}
		i, known := at[change.process]
		if !known {
			i, at[change.process], all = len(all), len(all), append(all, nil)
		}
		all[i] = append(all[i], id)
	}
	return all
}

// InForce tells of the changes in force, the earliest first.
func (a *Actuator) InForce() (all []InForce) {
	for _, id := range slices.Backward(a.Applied()) {
		if one, ok := a.force.describe(id); ok {
			all = append(all, one)
		}
	}
	return all
}
