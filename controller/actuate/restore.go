// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/actuate/system"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/procmem"
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
func Restore(dir string) ([]Restored, error) {
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
		done, err := restoreFile(path)
		all = append(all, done...)
		errs = append(errs, err)
	}
	return all, errors.Join(errs...)
}

func restoreFile(path string) (restored []Restored, err error) {
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
	open, err := openChanges(path)
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
// not be restored waits for it: it would be taken for somebody else's.
// Ranks of a job are restored together, once for all of their records.
type undoing struct {
	stay  []record
	ranks []restoredRanks
}

type restoredRanks struct {
	ranks *Ranks
	err   error
}

// together restores ranks, or says how that went when it was done for another one
// of them.
func (u *undoing) together(r *Ranks) error {
	for _, done := range u.ranks {
		if done.ranks.same(r) {
			return done.err
		}
	}
	err := restoreRanks(context.Background(), r)
	u.ranks = append(u.ranks, restoredRanks{r, err})
	return err
}

func (u *undoing) restore(r record) error {
	for _, later := range u.stay {
		if overlaps(r, later) {
			u.stay = append(u.stay, r)
			return fmt.Errorf("change %s, which was made on top of it, stays: undo it again later", later.Change)
		}
	}
	var err error
	if r.Ranks != nil {
		err = u.together(r.Ranks)
	} else {
		err = restoreRecord(r)
	}
	if err != nil && !final(err) {
		u.stay = append(u.stay, r)
	}
	return err
}

// maxLine bounds a line of the journal: a setting in each of 100,000 threads.
const maxLine = 32 << 20

// openChanges returns the records that begin and do not end. One that begins
// again replaces what it said before.
func openChanges(path string) ([]record, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	var open []record
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var r record
		if json.Unmarshal(lines.Bytes(), &r) != nil {
			continue
		}
		same := func(o record) bool { return o.Change == r.Change }
		switch {
		case r.Op == "begin" && r.Process != nil:
			open = append(slices.DeleteFunc(open, same), r)
		case r.Op == "more":
			for i := range open {
				if open[i].Change == r.Change {
					open[i].Settings = append(open[i].Settings, r.Settings...)
					open[i].Library = cmp.Or(r.Library, open[i].Library)
				}
			}
		case r.Op == "end":
			open = slices.DeleteFunc(open, same)
		}
	}
	return open, lines.Err()
}

func restoreRecord(r record) error {
	switch {
	case r.Library != nil:
		return restoreLibrary(r)
	case r.Patched != nil:
		return restorePatched(r)
	case r.Named != nil:
		return restoreNamed(r)
	case r.Stream != nil:
		return restoreStream(r)
	case len(r.Settings)+len(r.Words) == 0:
		return restoreCall(r)
	}
	var errs []error
	if len(r.Settings) > 0 {
		errs = append(errs, system.Restore(*r.Process, r.Settings))
	}
	if len(r.Words) > 0 {
		errs = append(errs, restoreWords(r))
	}
	return errors.Join(errs...)
}

// restoreCall answers for a change that is in no memory known: it cannot be
// taken back from outside.
func restoreCall(r record) error {
	if ended(r) {
		return nil
	}
	return ErrCallNotUndoable
}

// ended says whether the process of a record is gone; its pid may be somebody
// else's.
func ended(r record) bool {
	now, err := procid.Of(r.Process.PID)
	return errors.Is(err, procid.ErrGone) || err == nil && !now.SameProcess(*r.Process)
}

func restoreWords(r record) error {
	now, err := procid.Of(r.Process.PID)
	if errors.Is(err, procid.ErrGone) || (err == nil && !now.SameProcess(*r.Process)) {
		return nil // that process is gone; its pid may be somebody else's
	}
	if err != nil {
		return fmt.Errorf("identify process %d: %w", r.Process.PID, err)
	}
	images, err := objfile.Images(r.Process.PID)
	if err != nil {
		return fmt.Errorf("mappings of process %d: %w", r.Process.PID, err)
	}
	var errs []error
	for _, w := range slices.Backward(r.Words) {
		errs = append(errs, restoreWord(r.Process.PID, images, w))
	}
	return errors.Join(errs...)
}

func restoreWord(pid int, images []objfile.Image, w Word) error {
	mapped, err := objectThere(pid, images, w)
	if err != nil || !mapped {
		return err // unloaded, or the process has another image by now
	}
	return putBack(pid, w)
}

// objectThere says whether the object of a word is where it was. One whose file has
// been replaced is among the mappings, but not among the images of a user who may
// not open it any more.
func objectThere(pid int, images []objfile.Image, w Word) (bool, error) {
	same := func(i objfile.Image) bool { return i.Inode == w.ImageInode }
	if slices.ContainsFunc(images, same) {
		return slices.ContainsFunc(images, func(i objfile.Image) bool { return same(i) && i.Bias == w.ImageBias }), nil
	}
	mappings, err := objfile.Mappings(pid)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(mappings, func(m objfile.Mapping) bool { return m.Exec && m.Inode == w.ImageInode }), nil
}

// putBack restores a word if it still holds what the change wrote: what
// somebody else has changed since is theirs.
func putBack(pid int, w Word) error {
	switch {
	case w.Thread != nil && !w.Thread.lives():
		return nil
	case w.Slot:
		return putSlotBack(pid, w)
	}
	now := make([]byte, len(w.New))
	if err := procmem.Read(pid, w.Address, now); err != nil {
		return err
	}
	switch {
	case bytes.Equal(now, w.Old):
		return nil
	case !bytes.Equal(now, w.New):
		return fmt.Errorf("%s: %w", w.What, ErrChangedByOthers)
	}
	return put(pid, w, w.Old)
}

// ErrChangedByOthers means that a value is no longer what Attune made it, so
// that undoing would overwrite somebody else's decision.
var ErrChangedByOthers = system.ErrChangedByOthers
