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
		case !in.Process.Alive():
			continue // its pid may be somebody else's
		}
		if images == nil {
			var err error
			if images, err = in.Process.Images(); err != nil {
				return errors.Join(append(errs, fmt.Errorf("mappings of process %d: %w", in.Process.PID(), err))...)
			}
		}
		errs = append(errs, restoreWord(in.Process.PID(), images, w))
	}
	return errors.Join(errs...)
}

// leave leaves a word to the next change in force that has it as well; false:
// there is none. The journal knows it first.
func (in changed) leave(w Word) (bool, error) {
	if in.actuator == nil {
		return false, nil
	}
	id, later := in.actuator.nextWith(in.id, in.Process, w.Address)
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
	if err := in.actuator.options.Journal.begin(id, later.knob, in.Process.Identity(), &p); err != nil {
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
		if _, later := in.actuator.nextWith(in.id, in.Process, w.Address); later != nil || w.Slot || w.Thread != nil {
			continue
		}
		now := make([]byte, len(w.New))
		if err := procmem.Read(in.Process.PID(), w.Address, now); err != nil {
			return "", err
		}
		if !bytes.Equal(now, w.New) && stillMapped(in.Process, w) {
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
