// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/clock"
	"github.com/attune-hpc/attune/internal/procid"
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
// before it changed anything. What is held for the next controller stays until its time
// is over.
func (k Kinds) Restore(dir string) ([]Restored, error) { return k.restore(dir, clock.SinceBoot()) }

// RestoreHeld is Restore for what is held, too, whatever its time.
func (k Kinds) RestoreHeld(dir string) ([]Restored, error) { return k.restore(dir, math.MaxInt64) }

// restore takes back what is not held beyond a time.
func (k Kinds) restore(dir string, now time.Duration) ([]Restored, error) {
	paths, err := journalsIn(dir)
	if err != nil {
		return nil, err
	}
	var all []Restored
	var errs []error
	for _, path := range paths {
		done, err := k.restoreFile(path, now)
		all = append(all, done...)
		errs = append(errs, err)
	}
	return all, errors.Join(errs...)
}

// journalsIn lists the journals of this node and pid namespace.
func journalsIn(dir string) ([]string, error) {
	where, err := place()
	if err != nil {
		return nil, err
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*."+where+journalSuffix))
	if err != nil {
		return nil, fmt.Errorf("list journals: %w", err)
	}
	return paths, nil
}

// openLeft opens and locks the journal of a dead controller, and reads what is open in
// it; nil if its controller lives, or nothing is left of it.
func (n newUndos) openLeft(path string) (*Journal, []record, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|unix.O_NOFOLLOW, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil, nil // somebody else was quicker
	}
	if err != nil {
		return nil, nil, fmt.Errorf("open journal: %w", err)
	}
	if !lockLeft(file, path) || !named(file, path) {
		return nil, nil, file.Close() // its controller lives, or it is done with
	}
	open, err := n.openChanges(path)
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return &Journal{file: file, torn: true}, open, nil
}

// endingPatience is how long a controller may take to end that was killed: the kernel gives
// back its memory first, and its locks as it comes to each file.
const endingPatience = 10 * time.Second

// lockLeft locks the journal of a dead controller; false if its controller lives. One that is
// just ending is waited for: nobody would come back to what it leaves.
func lockLeft(file *os.File, path string) bool {
	for end := time.Now().Add(endingPatience); ; time.Sleep(time.Millisecond) {
		last := !ending(path) || time.Now().After(end)
		if unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			return true
		}
		if last {
			return false
		}
	}
}

// ending says whether the controller of a journal, which names it, is just ending.
func ending(path string) bool {
	name, _, _ := strings.Cut(filepath.Base(path), ".")
	pid, err := strconv.Atoi(name)
	if err != nil {
		return false
	}
	stat, err := procid.ReadStat(pid)
	return err == nil && (stat.Killed || stat.Exiting || stat.Leaderless())
}

func (k Kinds) restoreFile(path string, now time.Duration) (restored []Restored, err error) {
	journal, open, err := newUndos(k.Undos).openLeft(path)
	if journal == nil {
		return nil, err
	}
	var errs []error
	var below undoing
	for _, r := range slices.Backward(open) {
		if r.heldAt(now) {
			below.stay = append(below.stay, r)
			continue
		}
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
