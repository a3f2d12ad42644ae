// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/clock"
	"github.com/attune-hpc/attune/internal/procid"
)

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
	undos := newUndos(k.Undos)
	dead, above, err := undos.left(dir)
	byHand, keptErr := undos.byHand(dir)
	below := undoing{above: append(above, byHand...)}
	return below.undo(dead, now), errors.Join(err, keptErr, dead.close())
}

// left opens the journals of dead controllers in dir, and reads what living ones have in force.
func (n newUndos) left(dir string) (dead journals, living []record, err error) {
	paths, err := journalsIn(dir)
	errs := []error{err}
	for _, path := range paths {
		journal, open, err := n.openLeft(path)
		switch {
		case journal != nil:
			dead = append(dead, opened{journal, open, "restored"})
		case err == nil:
			if open, err = n.openChanges(path); errors.Is(err, os.ErrNotExist) {
				err = nil // somebody else was quicker
			}
			living = append(living, open...)
		}
		errs = append(errs, err)
	}
	return dead, living, errors.Join(errs...)
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
