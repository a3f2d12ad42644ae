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

// Undisturbed does something while no command changes anything by hand or takes that back, and
// none has yet to take back what it has just made: what [Request.Open] tells is all that anybody
// will go by. It does nothing if a command is at work.
func (r *Request) Undisturbed(do func() error) error {
	unlock, locked := lockAllKept(r.dir())
	defer unlock()
	if !locked {
		return nil
	}
	return do()
}

// dir is where the journal is, and those of others.
func (r *Request) dir() string { return filepath.Dir(r.journal.file.Name()) }
