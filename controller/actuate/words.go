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

	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/proc"
)

// writtenWords is the undo of a change that has written words of memory.
type writtenWords []access.Word

// UndoWords is the undo of a change that is words; nil for none.
func UndoWords(words []access.Word) Undos {
	if len(words) == 0 {
		return nil
	}
	written := writtenWords(words)
	return Undos{&written}
}

func (u *writtenWords) Kind() string { return "words" }

// TakeBack restores the words, the last first. One that a later change has as well
// is left to that one, which then restores what was there before both, unless somebody
// else has written the word in between.
func (u *writtenWords) TakeBack(_ context.Context, in Changed) error {
	var images []objfile.Image
	var errs []error
	for _, w := range slices.Backward(*u) {
		switch left, err := in.leave(w); {
		case err != nil:
			errs = append(errs, err)
			continue
		case left:
			continue
		case !in.Process.Alive():
			continue // its pid may be somebody else's
		}
		if images == nil {
			var err error
			if images, err = in.Process.Images(); err != nil {
				return errors.Join(append(errs, fmt.Errorf("mappings of process %d: %w", in.Process.PID(), err))...)
			}
		}
		errs = append(errs, access.RestoreWord(in.Process, images, w))
	}
	return errors.Join(errs...)
}

// leave leaves a word to the next change in force that has it as well; false:
// there is none. The journal knows it first.
func (in Changed) leave(w access.Word) (bool, error) {
	if !in.InForce() {
		return false, nil
	}
	return in.others.amendNext(in.id, in.alsoWrites(w.Address), func(part Undo) Undo {
		if words, ok := part.(*writtenWords); ok {
			return words.withOld(w)
		}
		return part
	})
}

// alsoWrites says whether an undo is of a word of the same process.
func (in Changed) alsoWrites(address uint64) func(u Undo, process access.Process) bool {
	return func(u Undo, process access.Process) bool {
		words, ok := u.(*writtenWords)
		return ok && process == in.Process && words.has(address)
	}
}

// withOld returns the words with what was there before another word was written, where they
// were written on top of that.
func (u *writtenWords) withOld(w access.Word) *writtenWords {
	words := slices.Clone(*u)
	for i := range words {
		if words[i].Address == w.Address && bytes.Equal(words[i].Old, w.New) {
			words[i].Old = w.Old
		}
	}
	return &words
}

// InFork implements [copied]. A copy of a thread-local variable is left alone: only the thread
// that forked is there, and the memory of the others may be somebody else's by now.
func (u *writtenWords) InFork() Undo {
	words := slices.DeleteFunc(slices.Clone(*u), func(w access.Word) bool { return w.Thread != nil })
	if len(words) == 0 {
		return nil
	}
	return &words
}

// Onto implements [stacked]. What threads jump through is left alone: the other change may be
// in force yet, and nobody would see that it is not any more.
func (u *writtenWords) Onto(below Undo, sameProcess bool) (on Undo) {
	other, ok := below.(*writtenWords)
	if !ok || !sameProcess {
		return nil
	}
	above := u
	for _, b := range *other {
		for _, w := range *u {
			if !w.Slot && w.Address == b.Address && w.ImageInode == b.ImageInode && bytes.Equal(w.Old, b.New) {
				above = above.withOld(b)
				on = above
			}
		}
	}
	return on
}

func (u *writtenWords) has(address uint64) bool {
	return slices.ContainsFunc(*u, func(w access.Word) bool { return w.Address == address })
}

func (u *writtenWords) Overlaps(other Undo, sameProcess bool) bool {
	words, ok := other.(*writtenWords)
	return ok && sameProcess && slices.ContainsFunc(*u, func(w access.Word) bool { return words.has(w.Address) })
}

func (u *writtenWords) About(Changed) About {
	var t Told
	var where []string
	for _, w := range *u {
		where = append(where, w.What)
		if t.Old == "" { // the first is the one that was meant
			t.Old, t.New = number(w.Old), number(w.New)
		}
	}
	t.Where = strings.Join(where, ", ")
	return About{Told: t, Keeps: true, Inherited: true}
}

// OtherValue implements [readable].
func (u *writtenWords) OtherValue(in Changed) (string, error) {
	for _, w := range *u {
		if w.Slot || w.Thread != nil || in.others.laterHas(in.id, in.alsoWrites(w.Address)) {
			continue
		}
		now := make([]byte, len(w.New))
		if err := proc.Read(in.Process, w.Address, now); err != nil {
			return "", err
		}
		if !bytes.Equal(now, w.New) && access.StillMapped(in.Process, w) {
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
