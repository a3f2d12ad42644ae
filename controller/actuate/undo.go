// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// undo is one way of taking a change back: what the journal keeps for it, and what
// is done with that. Each way is a type and an element of [Kinds]; nothing else tells
// one from another.
type undo interface {
	// kind names it in the journal.
	kind() string
	// takeBack gives back what was there before, where it still is what the change
	// made of it. The caller holds the lock of the process.
	takeBack(ctx context.Context, in changed) error
	// overlaps says whether another undo is of the same thing; sameProcess, whether
	// it is of the same process.
	overlaps(other undo, sameProcess bool) bool
	// about is what the owners of a change must know of it.
	about(in changed) about
}

// changed is where a change was made.
type changed struct {
	Process Process

	// actuator has the change id in force; nil: only the journal tells of it.
	actuator *Actuator
	id       string
}

// InForce says whether an Actuator has the change in force; false: only the journal
// tells of it.
func (in changed) InForce() bool { return in.actuator != nil }

// LaterHas says whether a later change in force has an undo like that; sameProcess,
// whether it is of the same process.
func (in changed) LaterHas(like func(u undo, sameProcess bool) bool) bool {
	in.actuator.mu.Lock()
	defer in.actuator.mu.Unlock()
	this := in.actuator.applied[in.id]
	for _, later := range in.actuator.applied {
		if this == nil || later.number <= this.number {
			continue
		}
		if slices.ContainsFunc(later.plan.undo, func(u undo) bool { return like(u, later.process == in.Process) }) {
			return true
		}
	}
	return false
}

// about is what the owners of a change must know of an undo. The zero value is of a
// change that ends with its process, and with its controller at the latest.
type about struct {
	// told is the change in words; zero: the change says it.
	told told
	// keeps: it is taken back from outside, so that it may outlive its controller.
	keeps bool
	// outlives: it may be in force when the process has ended.
	outlives bool
	// inherited: it may be there in the image that has replaced that of the process.
	inherited bool
	// spent: nothing is left of it to be listed.
	spent bool
}

// common is an undo that several changes have in common, each with a record of its
// own: it is made once for all of them.
type common interface{ sameAs(other undo) bool }

// readable is an undo of values that stay as they are unless somebody sets others.
type readable interface {
	// otherValue says what has another value than the change gave it; empty:
	// nothing. What a later change has as well is not looked at.
	otherValue(in changed) (string, error)
}

// undos are the parts of one change, in the order in which they were made.
type undos []undo

// takeBack takes all parts back, the last first.
func (u undos) takeBack(ctx context.Context, in changed) error {
	var errs []error
	for _, part := range slices.Backward(u) {
		errs = append(errs, part.takeBack(ctx, in))
	}
	return errors.Join(errs...)
}

// any says whether a part is so.
func (u undos) any(in changed, is func(about) bool) bool {
	return slices.ContainsFunc(u, func(part undo) bool { return is(part.about(in)) })
}

// told is what the first part that says something says.
func (u undos) told(in changed) (t told) {
	for _, part := range u {
		if t = part.about(in).told; t != (told{}) {
			break
		}
	}
	return t
}

// overlaps says whether two changes are of the same thing.
func (u undos) overlaps(other undos, sameProcess bool) bool {
	return slices.ContainsFunc(u, func(part undo) bool {
		return slices.ContainsFunc(other, func(o undo) bool { return part.overlaps(o, sameProcess) })
	})
}

// sharedWith says whether two changes have an undo in common.
func (u undos) sharedWith(other undos) bool {
	return slices.ContainsFunc(u, func(part undo) bool {
		s, ok := part.(common)
		return ok && slices.ContainsFunc(other, s.sameAs)
	})
}

// appendTo adds the parts to the line of a record, each under the name of its kind.
func (u undos) appendTo(line []byte) ([]byte, error) {
	for _, part := range u {
		text, err := json.Marshal(part)
		if err != nil {
			return nil, err
		}
		line = fmt.Appendf(line[:len(line)-1], ",%q:%s}", part.kind(), text)
	}
	return line, nil
}

// readUndos reads the parts that the line of a record has.
func (k Kinds) readUndos(line []byte) (parts undos, err error) {
	var texts map[string]json.RawMessage
	if err := json.Unmarshal(line, &texts); err != nil {
		return nil, err
	}
	empty := []undo{new(writtenWords)}
	for _, newUndo := range k.Undos {
		empty = append(empty, newUndo())
	}
	for _, part := range empty {
		text, ok := texts[part.kind()]
		if !ok {
			continue
		}
		if err := json.Unmarshal(text, part); err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	return parts, nil
}

// final says whether undoing again would be of no use, of each part that
// failed.
func final(err error) bool {
	if parts, ok := err.(interface{ Unwrap() []error }); ok {
		return !slices.ContainsFunc(parts.Unwrap(), func(part error) bool { return !final(part) })
	}
	var last Final
	return errors.As(err, &last)
}
