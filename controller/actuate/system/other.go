// SPDX-License-Identifier: Apache-2.0

package system

import (
	"errors"
	"fmt"

	"github.com/attune-hpc/attune/internal/procid"
)

// overridden returns the first of the states whose value is not what it was set
// to any more, in words: somebody else has set another one. Empty: none. Places
// that are gone, advice, and knobs that the kernel moves by itself say nothing.
func overridden(identity procid.Identity, states []State) (text string, err error) {
	t, err := Open(identity)
	if err != nil {
		return "", unlessGone(err)
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	for _, s := range states {
		k, err := find(s.Knob)
		if err != nil {
			return "", err
		}
		if s.Place.Later || k.advice || k.drifts {
			continue
		}
		if now, differs, err := k.otherValue(t, s); err != nil || differs {
			return fmt.Sprintf("%s of %s is %s, not %s", s.Knob, s.Place, now, s.New), err
		}
	}
	return "", nil
}

// otherValue reads a place and says whether the value is another one than it was
// set to.
func (k *knob) otherValue(t *Target, s State) (now string, differs bool, err error) {
	now, err = k.read(t, s.Place)
	if err != nil {
		return "", false, unlessGone(k.failure("read", s.Place, err))
	}
	return now, !k.matches(s.New, now), nil
}
