// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/attune-hpc/attune/controller/actuate/access"
)

// Undo is one way of taking a change back: what the journal keeps for it, and what
// is done with that. Each way is a type and an element of [Kinds]; nothing else tells
// one from another.
type Undo interface {
	// Kind names it in the journal.
	Kind() string
	// TakeBack gives back what was there before, where it still is what the change
	// made of it. The caller holds the lock of the process.
	TakeBack(ctx context.Context, in Changed) error
	// Overlaps says whether another undo is of the same thing; sameProcess, whether
	// it is of the same process.
	Overlaps(other Undo, sameProcess bool) bool
	// About is what the owners of a change must know of it.
	About(in Changed) About
}

// Changed is where a change was made.
type Changed struct {
	Process access.Process

	// others are the changes in force, of which id is one; nil: only the journal tells
	// of it.
	others others
	id     string
	// rewrite writes the undos down anew; nil: no journal has the change.
	rewrite func() error
	// ended: the process has ended or executes another program, and the caller holds no lock
	// of a process.
	ended bool
}

// others are what an undo may ask of the changes in force.
type others interface {
	// laterHas says whether a change after id has an undo like that in a process.
	laterHas(id string, like func(u Undo, in access.Process) bool) bool
	// amendNext gives the first change after id that has an undo like that in a process
	// other undos, which the journal knows first; false: there is none.
	amendNext(id string, like func(u Undo, in access.Process) bool, amended func(Undo) Undo) (bool, error)
	// amendLater does so with all changes after one, the earliest first. While something is
	// being changed in the process of one, that is waited for if the own process has ended,
	// and is an error otherwise.
	amendLater(in Changed, like func(u Undo, in access.Process) bool, amended func(u Undo, in access.Process) Undo) error
}

// InForce says whether an Actuator has the change in force; false: only the journal
// tells of it.
func (in Changed) InForce() bool { return in.others != nil }

// Rewrite writes the undos of the change down anew, as they are by now: whoever reads the journal
// later, as after a crash, takes back no more than that.
func (in Changed) Rewrite() error {
	if in.rewrite == nil {
		return nil
	}
	return in.rewrite()
}

// LaterHas says whether a later change in force has an undo like that; sameProcess,
// whether it is of the same process. False where only the journal tells of the change.
func (in Changed) LaterHas(like func(u Undo, sameProcess bool) bool) bool {
	return in.InForce() && in.others.laterHas(in.id, func(u Undo, process access.Process) bool { return like(u, in.sameProcess(process)) })
}

// AmendLater gives the later changes in force that have an undo like that other undos, the
// earliest first, which the journal knows first; sameProcess, whether an undo is of the same
// process. After an error it may be called again. Where only the journal tells of the change,
// there are none.
func (in Changed) AmendLater(like func(u Undo, sameProcess bool) bool, amended func(u Undo, sameProcess bool) Undo) error {
	if !in.InForce() {
		return nil
	}
	return in.others.amendLater(in,
		func(u Undo, process access.Process) bool { return like(u, in.sameProcess(process)) },
		func(u Undo, process access.Process) Undo { return amended(u, in.sameProcess(process)) },
	)
}

// sameProcess says whether a change was made in a process or in what it executed before.
func (in Changed) sameProcess(process access.Process) bool {
	return process.Identity().SameProcess(in.Process.Identity())
}

// Told is a change in words.
type Told struct {
	Where string `json:"where"`
	Old   string `json:"old"`
	New   string `json:"new"`
}

// InForce is a change that was made and not undone, as an Actuator or a journal has it.
type InForce struct {
	// ID to undo it by.
	ID string `json:"id"`
	// Knob that was changed.
	Knob string `json:"knob"`
	// PID of the process that it was changed in.
	PID int `json:"pid"`
	// Old and New value in text form.
	Old string `json:"old"`
	New string `json:"new"`
	// Where it was changed, e.g. "12 threads", "fd 7".
	Where string `json:"where"`
	// Since is when.
	Since time.Time `json:"since"`
	// By is the journal's name: the pid of a controller, or empty for a
	// change made by hand.
	By string `json:"by,omitempty"`
	// Registration whose session made it; empty: none of the service's did, or nobody
	// can say which.
	Registration string `json:"registration,omitempty"`
}

// About is what the owners of a change must know of an undo. The zero value is of a
// change that ends with its process, and with its controller at the latest.
type About struct {
	// Told is the change in words; zero: the change says it.
	Told Told
	// Keeps: it is taken back from outside, so that it may outlive its controller.
	Keeps bool
	// Outlives: it may be in force when the process has ended.
	Outlives bool
	// Inherited: it may be there in the image that has replaced that of the process.
	Inherited bool
	// Spent: nothing is left of it to be listed.
	Spent bool
}

// common is an undo that several changes have in common, each with a record of its
// own: it is made once for all of them.
type common interface{ SameAs(other Undo) bool }

// ErrPlacesGone means that all that a change was made to is gone, for good: threads have ended,
// or files were closed.
var ErrPlacesGone = errors.New("all that was changed is gone")

// readable is an undo of values that stay as they are unless somebody sets others.
type readable interface {
	// OtherValue says what has another value than the change gave it; empty:
	// nothing. What a later change has as well is not looked at. After [ErrPlacesGone] it is not
	// asked again.
	OtherValue(in Changed) (string, error)
}

// stacked is an undo that can give back what was there before another change.
type stacked interface {
	// Onto returns an undo that gives that back where this one was made on top of the other
	// one; nil: it was not. sameProcess says whether that is of the same process.
	Onto(below Undo, sameProcess bool) Undo
}

// Undos are the parts of one change, in the order in which they were made.
type Undos []Undo

// takeBack takes all parts back, the last first.
func (u Undos) takeBack(ctx context.Context, in Changed) error {
	var errs []error
	for _, part := range slices.Backward(u) {
		errs = append(errs, part.TakeBack(ctx, in))
	}
	return errors.Join(errs...)
}

// any says whether a part is so.
func (u Undos) any(in Changed, is func(About) bool) bool {
	return slices.ContainsFunc(u, func(part Undo) bool { return is(part.About(in)) })
}

// told is what the first part that says something says.
func (u Undos) told(in Changed) (t Told) {
	for _, part := range u {
		if t = part.About(in).Told; t != (Told{}) {
			break
		}
	}
	return t
}

// overlaps says whether two changes are of the same thing.
func (u Undos) overlaps(other Undos, sameProcess bool) bool {
	return slices.ContainsFunc(u, func(part Undo) bool {
		return slices.ContainsFunc(other, func(o Undo) bool { return part.Overlaps(o, sameProcess) })
	})
}

// sharedWith says whether two changes have an undo in common.
func (u Undos) sharedWith(other Undos) bool {
	return slices.ContainsFunc(u, func(part Undo) bool {
		s, ok := part.(common)
		return ok && slices.ContainsFunc(other, s.SameAs)
	})
}

// appendTo adds the parts to the line of a record, each under the name of its kind.
func (u Undos) appendTo(line []byte) ([]byte, error) {
	for _, part := range u {
		text, err := json.Marshal(part)
		if err != nil {
			return nil, err
		}
		line = fmt.Appendf(line[:len(line)-1], ",%q:%s}", part.Kind(), text)
	}
	return line, nil
}

// final says whether undoing again would be of no use, of each part that
// failed.
func final(err error) bool {
	return !slices.ContainsFunc(leaves(err), func(part error) bool {
		_, last := errors.AsType[access.Final](part)
		return !last
	})
}

// leaves are the errors that were joined. One that wraps [access.ErrChangedByOthers] beside
// the particulars is one.
func leaves(err error) (all []error) {
	parts, joined := err.(interface{ Unwrap() []error })
	if !joined || slices.Contains(parts.Unwrap(), error(access.ErrChangedByOthers)) {
		return []error{err}
	}
	for _, part := range parts.Unwrap() {
		all = append(all, leaves(part)...)
	}
	return all
}
