// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Restored tells what became of one change that a dead controller left behind.
type Restored struct {
	Change string
	Knob   string
	PID    int
	// Err is nil when the original values are back or the process is gone.
	// An [access.Final] is the last word on a change; after any other error the
	// next Restore tries again.
	Err error
}

// opened is a journal that is locked, with what is to be undone of it, in the order in which
// it was made, and how it then says that it was.
type opened struct {
	journal *Journal
	open    []record
	outcome string
}

type journals []opened

func (all journals) close() error {
	var errs []error
	for _, one := range all {
		errs = append(errs, one.journal.Close())
	}
	return errors.Join(errs...)
}

// latest takes out the change that was made last of all; false: there is none.
func (all journals) latest() (r record, of opened, found bool) {
	at := -1
	for i, one := range all {
		if n := len(one.open); n > 0 && (at < 0 || one.open[n-1].Time.After(r.Time)) {
			at, r = i, one.open[n-1]
		}
	}
	if at < 0 {
		return r, of, false
	}
	all[at].open = all[at].open[:len(all[at].open)-1]
	return r, all[at], true
}

// undoing restores changes, the latest first. What lies below one that could
// not be restored waits for it: it would be taken for somebody else's. An undo
// that changes share is made once.
type undoing struct {
	forks forks
	above []record // of journals that are left alone
	stay  []record
	done  []restored
}

// restored is a change with a shared undo, and how that went.
type restored struct {
	undo Undos
	err  error
}

// undo takes back what journals have, but for what is held beyond a time.
func (u *undoing) undo(all journals, now time.Duration) (done []Restored) {
	var open [][]record
	for _, one := range all {
		open = append(open, one.open)
	}
	markOver(open...)
	for {
		r, of, found := all.latest()
		switch {
		case !found:
			return done
		case r.heldAt(now):
			u.stay = append(u.stay, r)
			continue
		}
		err := u.restore(r, of.journal)
		if err == nil || final(err) {
			err = errors.Join(err, of.journal.end(r.Change, of.outcome))
		}
		done = append(done, Restored{Change: r.Change, Knob: r.Knob, PID: r.Process.PID, Err: err})
	}
}

func (u *undoing) restore(r record, journal *Journal) error {
	onTop := func(later record) bool { return !r.Undone && later.Time.After(r.Time) && r.overlaps(later) }
	at := slices.IndexFunc(u.stay, r.overlaps)
	above := u.stay
	if at < 0 {
		at, above = slices.IndexFunc(u.above, onTop), u.above
	}
	if at >= 0 {
		u.stay = append(u.stay, r)
		return fmt.Errorf("change %s, which was made on top of it, stays: undo it again later", above[at].Change)
	}
	err := u.takeBack(r, journal)
	if err != nil && !final(err) {
		u.stay = append(u.stay, r)
	}
	return err
}

// takeBack undoes a change, or says how that went when it was done for another one.
func (u *undoing) takeBack(r record, journal *Journal) error {
	for _, other := range u.done {
		if r.Undo.sharedWith(other.undo) {
			return other.err
		}
	}
	err := r.takeBack(context.Background(), journal.append, &u.forks, true)
	u.done = append(u.done, restored{r.Undo, err})
	return err
}
