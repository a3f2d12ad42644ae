// SPDX-License-Identifier: Apache-2.0

package actuate

import "path/filepath"

// Open returns the undos of all changes in force in the process, the earliest first: those that
// the journal has, and others in its directory, of controllers and of what was changed by hand. A
// journal that cannot be read is left out.
func (r *Request) Open() (all []Undo) {
	if r.journal == nil {
		return nil
	}
	open, _ := r.undos.byHand(r.dir())
	open = append(open, r.undos.ofControllers(r.dir())...)
	sortByTime(open)
	for _, change := range open {
		if change.Process.SameProcess(r.Process.Identity()) {
			all = append(all, change.Undo...)
		}
	}
	return all
}

// dir is where the journal is, and those of others.
func (r *Request) dir() string { return filepath.Dir(r.journal.file.Name()) }
