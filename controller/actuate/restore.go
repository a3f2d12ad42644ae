// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// Restored tells what became of one change that a dead controller left behind.
type Restored struct {
	Change string
	Knob   string
	PID    int
	// Err is nil when the original values are back or the process is gone.
	// [ErrChangedByOthers] and [ErrCallNotUndoable] are the last word on a
	// change; after any other error the next Restore tries again.
	Err error
}

// Restore undoes what controllers that no longer live left behind in dir. A
// journal whose controller lives is locked and left alone, and so are those of
// other nodes and pid namespaces; one that is done with is removed. Damaged
// lines are skipped: a controller killed while it wrote leaves half a line,
// before it changed anything.
func (k Kinds) Restore(dir string) ([]Restored, error) {
	where, err := place()
	if err != nil {
		return nil, err
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*."+where+journalSuffix))
	if err != nil {
		return nil, fmt.Errorf("list journals: %w", err)
	}
	var all []Restored
	var errs []error
	for _, path := range paths {
		done, err := k.restoreFile(path)
		all = append(all, done...)
		errs = append(errs, err)
	}
	return all, errors.Join(errs...)
}

func (k Kinds) restoreFile(path string) (restored []Restored, err error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|unix.O_NOFOLLOW, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil // another Restore was quicker
	}
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	journal := &Journal{file: file, torn: true}
	if unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil || !named(file, path) {
		return nil, file.Close() // its controller lives, or it is done with
	}
	open, err := k.openChanges(path)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	var errs []error
	var below undoing
	for _, r := range slices.Backward(open) {
		err := below.restore(r)
		restored = append(restored, Restored{Change: r.Change, Knob: r.Knob, PID: r.Process.PID, Err: err})
		if err == nil || final(err) {
			errs = append(errs, journal.end(r.Change, "restored"))
		}
	}
	return restored, errors.Join(append(errs, journal.Close())...)
}

// undoing restores changes, the latest first. What lies below one that could
// not be restored waits for it: it would be taken for somebody else's. An undo
// that changes share is made once.
type undoing struct {
	stay []record
	done []restored
}

// restored is a change with a shared undo, and how that went.
type restored struct {
	undo Undos
	err  error
}

func (u *undoing) restore(r record) error {
	for _, later := range u.stay {
		if r.overlaps(later) {
			u.stay = append(u.stay, r)
			return fmt.Errorf("change %s, which was made on top of it, stays: undo it again later", later.Change)
		}
	}
	err := u.takeBack(r)
	if err != nil && !final(err) {
		u.stay = append(u.stay, r)
	}
	return err
}

// takeBack undoes a change, or says how that went when it was done for another one.
func (u *undoing) takeBack(r record) error {
	for _, other := range u.done {
		if r.Undo.sharedWith(other.undo) {
			return other.err
		}
	}
	err := r.takeBack(context.Background())
	u.done = append(u.done, restored{r.Undo, err})
	return err
}

// maxLine bounds a line of the journal: a setting in each of 100,000 threads.
const maxLine = 32 << 20

// openChanges returns the records that begin and do not end, in the order of their
// first begin. One that begins again replaces what it said before.
func (k Kinds) openChanges(path string) ([]record, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	var open []record
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		r, err := k.read(lines.Bytes())
		if err != nil {
			continue
		}
		same := func(o record) bool { return o.Change == r.Change }
		switch at := slices.IndexFunc(open, same); {
		case r.Op == "begin" && r.Process != nil && at >= 0:
			r.Time = open[at].Time
			open[at] = r
		case r.Op == "begin" && r.Process != nil:
			open = append(open, r)
		case r.Op == "end":
			open = slices.DeleteFunc(open, same)
		}
	}
	return open, lines.Err()
}

// HandOver moves the changes in force into the journal of what is kept until a
// user undoes it, and returns their ids there. A change that cannot be taken
// back from outside stays where it is. Call it after [Actuator.Stop].
//
// Each change stands in one of the two journals at any time, or in both: then
// the next controller takes it back.
func (a *Actuator) HandOver(kept *Kept) (ids []string, err error) {
	open, err := a.options.Kinds.openChanges(a.options.Journal.file.Name())
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, id := range slices.Backward(a.Applied()) {
		i := slices.IndexFunc(open, func(r record) bool { return r.Change == id })
		if i < 0 || !open[i].any(func(u About) bool { return u.Keeps }) {
			continue
		}
		newID, err := a.handOver(kept, open[i])
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if newID != "" {
			ids = append(ids, newID)
		}
	}
	return ids, errors.Join(errs...)
}

// handOver moves one change; no id if it is not in force any more.
func (a *Actuator) handOver(kept *Kept, r record) (id string, err error) {
	change := a.find(r.Change)
	if change == nil {
		return "", nil
	}
	change.process.Lock()
	defer change.process.Unlock()
	if a.find(r.Change) != change || !change.process.Alive() {
		return "", nil
	}
	old := r.Change
	r.Change = kept.NextID()
	if err := kept.append(r); err != nil {
		return "", err
	}
	a.mu.Lock()
	delete(a.applied, old)
	a.mu.Unlock()
	return r.Change, a.options.Journal.end(old, "kept")
}
