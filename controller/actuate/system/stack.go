// SPDX-License-Identifier: Apache-2.0

package system

import (
	"slices"

	"github.com/attune-hpc/attune/controller/actuate"
)

// passOn has the later changes in force that were made on top of these states give back what was
// there before both.
func (u *systemStates) passOn(in actuate.Changed) error {
	var between systemStates // of later changes, on top of which the next ones were made
	return in.AmendLater(u.Overlaps, func(later actuate.Undo, sameProcess bool) actuate.Undo {
		states, ok := later.(*systemStates)
		if !ok {
			return later
		}
		next := func(s State) bool {
			return !slices.ContainsFunc(between, func(b State) bool { return b.sameAs(s, sameProcess) })
		}
		amended := states.onto(u, sameProcess, next)
		between = append(between, *states...)
		return &amended
	})
}

// Onto implements [stacked] of package actuate.
func (u *systemStates) Onto(below actuate.Undo, sameProcess bool) actuate.Undo {
	states, ok := below.(*systemStates)
	if !ok {
		return nil
	}
	above := u.onto(states, sameProcess, func(State) bool { return true })
	if slices.Equal(above, *u) {
		return nil
	}
	return &above
}

// onto returns the states with what was there before other ones, where they were made on top of
// those; next says which may have been.
func (u *systemStates) onto(below *systemStates, sameProcess bool, next func(State) bool) systemStates {
	above := slices.Clone(*u)
	for i, s := range above {
		if s.Place.Later {
			above[i].Old = above[0].Old // what the first thread had
		} else if old, found := below.under(s, sameProcess); found && next(s) {
			above[i].Old = old
		}
	}
	return above
}

// under returns what was at the place of a state before these; false: it was not made on top of
// one of them.
func (u *systemStates) under(s State, sameProcess bool) (old string, found bool) {
	k, err := find(s.Knob)
	if err != nil {
		return "", false
	}
	for _, later := range []bool{false, true} { // a thread with a state of its own is none of those started since
		at := slices.IndexFunc(*u, func(b State) bool { return b.Place.Later == later && b.sameAs(s, sameProcess) })
		if at >= 0 {
			return (*u)[at].Old, k.matches((*u)[at].New, s.Old)
		}
	}
	return "", false
}

// laterSet says whether a later change in force has given the place of a state the value that
// it has now.
func laterSet(in actuate.Changed, s State, now string) bool {
	k, err := find(s.Knob)
	return err == nil && in.LaterHas(func(later actuate.Undo, sameProcess bool) bool {
		states, ok := later.(*systemStates)
		return ok && slices.ContainsFunc(*states, func(o State) bool {
			return !o.Place.Later && s.sameAs(o, sameProcess) && k.matches(o.New, now)
		})
	})
}

// sameAs reports whether two states are of the same thing: one pipe, socket or cgroup
// several processes may have, and the threads created since a change are those of others, too.
func (s State) sameAs(o State, sameProcess bool) bool {
	sameFile := s.Place.Inode != 0 && s.Place.Inode == o.Place.Inode && s.Place.Device == o.Place.Device
	samePlace := s.Place == o.Place || s.Place.createdSince(o.Place) || o.Place.createdSince(s.Place)
	return (sameFile || sameProcess && samePlace) && plainName(s.Knob) == plainName(o.Knob)
}

// createdSince says whether a place is one of the threads that the other stands for.
func (p Place) createdSince(later Place) bool {
	return later.Later && !p.Later && p.Started >= later.Started
}
