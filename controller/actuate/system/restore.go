// SPDX-License-Identifier: Apache-2.0

package system

import (
	"errors"
	"fmt"
	"slices"

	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/internal/procid"
)

// restore puts old values back, the last one first, where the new one is still
// there. Places that are gone need nothing. [access.ErrChangedByOthers] where the
// value is another by now, [ErrNoUndo] for advice. A cgroup outlives the
// process and is restored even if that is gone. later says whether a later change has given the
// place of a state the value that it has now, which is left to that change.
func restore(identity procid.Identity, states []State, later func(s State, now string) bool) error {
	if boot, err := procid.BootID(); err != nil || boot != identity.BootID {
		return err // nothing outlives the machine
	}
	t, err := Open(identity)
	if errors.Is(err, procid.ErrGone) {
		states = slices.DeleteFunc(slices.Clone(states), func(s State) bool { return s.Place.Scope != OnCgroup })
	} else if err != nil {
		return err
	}
	if t != nil {
		defer t.Close()
	}
	var errs []error
	for _, s := range slices.Backward(states) {
		if !s.Place.Later {
			errs = append(errs, restoreOne(t, s, later))
		}
	}
	for _, s := range states {
		if s.Place.Later {
			errs = append(errs, restoreLater(t, s, states, later))
		}
	}
	return errors.Join(errs...)
}

func restoreOne(t *Target, s State, later func(State, string) bool) error {
	k, err := find(s.Knob)
	switch {
	case err != nil:
		return err
	case k.advice:
		return fmt.Errorf("%s: %w", s.Knob, ErrNoUndo)
	}
	return unlessGone(k.putBack(t, s, later))
}

// putBack restores one place. errPlaceGone if it is not there any more.
func (k *knob) putBack(t *Target, s State, later func(State, string) bool) (err error) {
	held, err := k.open(t, s.Place)
	if err != nil {
		return k.failure("open", s.Place, err)
	}
	defer func() { err = errors.Join(err, held.Close()) }()
	now, err := held.get()
	switch {
	case err != nil:
		return k.failure("read", s.Place, err)
	case k.matches(s.Old, now), later(s, now):
		return nil
	case k.matches(s.New, now):
	case k.drifts:
		return nil // the kernel has decided otherwise already
	default:
		return fmt.Errorf("%s of %s is %s: %w", k.Name, s.Place, now, access.ErrChangedByOthers)
	}
	if err := k.setOld(t, held, s); err != nil {
		return err
	}
	if now, err = held.get(); err != nil {
		return k.failure("read back", s.Place, err)
	}
	if !k.matches(s.Old, now) {
		return fmt.Errorf("%s of %s is %s after restoring, was %s", k.Name, s.Place, now, s.Old)
	}
	return nil
}

// setOld sets the old value at a place, unless that would do harm by now.
func (k *knob) setOld(t *Target, held slot, s State) (err error) {
	if k.harm != nil {
		err = k.harm(t, s.Place, s.Old)
	}
	if err == nil {
		err = held.set(s.Old)
	}
	if err != nil {
		return k.failure("restore", s.Place, err)
	}
	return nil
}

// restoreLater gives threads that were created since, and inherited the new
// value, what the first thread had. It comes after the others, so that those
// create no more of them, and goes on until no thread has the new value.
func restoreLater(t *Target, s State, states []State, later func(State, string) bool) error {
	k, err := find(s.Knob)
	if err != nil || t == nil {
		return err
	}
	for range maxRounds {
		places, err := t.threads()
		if err != nil {
			return unlessGone(err)
		}
		places = slices.DeleteFunc(places, func(p Place) bool { return !k.inherited(t, s.at(p), s.Place.Started, states, later) })
		if len(places) == 0 {
			return nil
		}
		for _, place := range places {
			if err := unlessGone(k.putBack(t, s.at(place), later)); err != nil {
				return err
			}
		}
	}
	return fmt.Errorf("%s: the process creates threads faster than they can be restored", k.Name)
}

// at is the state of one of the threads that a state of later ones stands for.
func (s State) at(thread Place) State {
	return State{Knob: s.Knob, Place: thread, Old: s.Old, New: s.New}
}

// inherited says whether a thread is none of those that were changed, has started since, and
// has the new value, which no later change has given it.
func (k *knob) inherited(t *Target, s State, since uint64, states []State, later func(State, string) bool) bool {
	if s.Place.Started < since || slices.ContainsFunc(states, func(o State) bool { return o.Place == s.Place }) {
		return false
	}
	now, err := k.read(t, s.Place)
	return err == nil && s.Old != s.New && k.matches(s.New, now) && !later(s, now)
}

// exists says whether the cgroup of a place is still there.
func exists(identity procid.Identity, place Place) bool {
	if boot, err := procid.BootID(); err != nil || boot != identity.BootID {
		return false
	}
	held, err := openCgroup("", "")(nil, place)
	if err != nil {
		return false
	}
	_ = held.Close() // a directory
	return true
}
