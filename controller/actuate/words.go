// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procmem"
)

// Word is a stretch of a process' memory that a change replaces. It lies in a
// mapped file, so that a later controller can tell whether the address still
// means the same thing.
type Word struct {
	// What names it for people, e.g. "libopen-pal.so.40:opal_progress_yield_when_idle".
	What string `json:"what"`
	// ImagePath, ImageInode and ImageBias identify the mapped object.
	ImagePath  string `json:"image_path"`
	ImageInode uint64 `json:"image_inode"`
	ImageBias  uint64 `json:"image_bias"`
	// Address in the process.
	Address uint64 `json:"address"`
	// Old and New contents; the same length.
	Old []byte `json:"old"`
	New []byte `json:"new"`
	// Slot says that threads jump through it: it changes in one go only. Origin is
	// what makes it one.
	Slot   bool           `json:"slot,omitempty"`
	Origin objfile.Origin `json:"origin,omitzero"`
	// ReadOnly says that the process itself may not write there.
	ReadOnly bool `json:"read_only,omitempty"`
	// Thread whose copy of a thread-local variable it is; nil: no such copy.
	Thread *Thread `json:"thread,omitempty"`
}

// writtenWords is the undo of a change that has written words of memory.
type writtenWords []Word

// undoWords is the undo of a change that is words; nil for none.
func undoWords(words []Word) undos {
	if len(words) == 0 {
		return nil
	}
	written := writtenWords(words)
	return undos{&written}
}

func (u *writtenWords) kind() string { return "words" }

// takeBack restores the words, the last first. One that a later change has as well
// is left to that one, which then restores what was there before both.
func (u *writtenWords) takeBack(_ context.Context, in changed) error {
	var images []objfile.Image
	var errs []error
	for _, w := range slices.Backward(*u) {
		switch left, err := in.leave(w); {
		case err != nil:
			errs = append(errs, err)
			continue
		case left:
			continue
		case !in.process.Alive():
			continue // its pid may be somebody else's
		}
		if images == nil {
			var err error
			if images, err = in.process.Images(); err != nil {
				return errors.Join(append(errs, fmt.Errorf("mappings of process %d: %w", in.process.PID(), err))...)
			}
		}
		errs = append(errs, restoreWord(in.process.PID(), images, w))
	}
	return errors.Join(errs...)
}

// leave leaves a word to the next change in force that has it as well; false:
// there is none. The journal knows it first.
func (in changed) leave(w Word) (bool, error) {
	if in.actuator == nil {
		return false, nil
	}
	id, later := in.actuator.nextWith(in.id, in.process, w.Address)
	if later == nil {
		return false, nil
	}
	p := *later.plan
	p.undo = slices.Clone(p.undo)
	for i, part := range p.undo {
		if words, ok := part.(*writtenWords); ok {
			p.undo[i] = words.withOld(w)
		}
	}
	if err := in.actuator.options.Journal.begin(id, later.knob, in.process.Identity(), &p); err != nil {
		return false, err
	}
	later.plan.undo = p.undo
	return true, nil
}

// withOld returns the words with what was there before another word was written.
func (u *writtenWords) withOld(w Word) *writtenWords {
	words := slices.Clone(*u)
	for i := range words {
		if words[i].Address == w.Address {
			words[i].Old = w.Old
		}
	}
	return &words
}

// nextWith finds the first change after this one that replaced the same word; nil
// if there is none.
func (a *Actuator) nextWith(changeID string, process Process, address uint64) (id string, next *appliedChange) {
	a.mu.Lock()
	defer a.mu.Unlock()
	this := a.applied[changeID]
	if this == nil {
		return "", nil // not in force yet, so none is later
	}
	for other, change := range a.applied {
		if change.process != process || change.number <= this.number || (next != nil && next.number < change.number) {
			continue
		}
		if slices.ContainsFunc(change.plan.undo, func(part undo) bool {
			words, ok := part.(*writtenWords)
			return ok && words.has(address)
		}) {
			id, next = other, change
		}
	}
	return id, next
}

func (u *writtenWords) has(address uint64) bool {
	return slices.ContainsFunc(*u, func(w Word) bool { return w.Address == address })
}

func (u *writtenWords) overlaps(other undo, sameProcess bool) bool {
	words, ok := other.(*writtenWords)
	return ok && sameProcess && slices.ContainsFunc(*u, func(w Word) bool { return words.has(w.Address) })
}

func (u *writtenWords) about(changed) about {
	var t told
	var where []string
	for _, w := range *u {
		where = append(where, w.What)
		if t.Old == "" { // the first is the one that was meant
			t.Old, t.New = number(w.Old), number(w.New)
		}
	}
	t.Where = strings.Join(where, ", ")
	return about{told: t, keeps: true, inherited: true}
}

// otherValue implements [readable].
func (u *writtenWords) otherValue(in changed) (string, error) {
	for _, w := range *u {
		if _, later := in.actuator.nextWith(in.id, in.process, w.Address); later != nil || w.Slot || w.Thread != nil {
			continue
		}
		now := make([]byte, len(w.New))
		if err := procmem.Read(in.process.PID(), w.Address, now); err != nil {
			return "", err
		}
		if !bytes.Equal(now, w.New) && stillMapped(in.process, w) {
			return fmt.Sprintf("%s is %s, not %s", w.What, number(now), number(w.New)), nil
		}
	}
	return "", nil
}

// number writes little-endian bytes as an unsigned number.
func number(data []byte) string {
	var buf [8]byte
	copy(buf[:], data)
	return strconv.FormatUint(binary.LittleEndian.Uint64(buf[:]), 10)
}

// stillMapped reports whether the object of a word is still where it was: its memory
// may be something else's.
func stillMapped(process Process, w Word) bool {
	images, err := process.Images()
	if err != nil || w.ImagePath == "" {
		return false
	}
	return slices.ContainsFunc(images, func(image objfile.Image) bool {
		return image.Path == w.ImagePath && image.Bias == w.ImageBias
	})
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
