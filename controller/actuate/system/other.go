// SPDX-License-Identifier: Apache-2.0

package system

import (
	"errors"
	"fmt"

	"github.com/attune-hpc/attune/internal/procid"
)

// overridden returns the first of the states whose value is not what it was set
// to any more, in words: somebody else has set another one. Empty: none. Places
// that are gone, which are counted, advice, and knobs that the kernel moves by itself say
// nothing.
func overridden(identity procid.Identity, states []State) (text string, lost int, err error) {
	t, err := Open(identity)
	if err != nil {
		return "", 0, unlessGone(err)
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	for _, s := range states {
		k, err := find(s.Knob)
		if err != nil {
			return "", lost, err
		}
		if s.Place.Later || k.advice || k.drifts {
			continue
		}
		switch now, err := k.read(t, s.Place); {
		case gone(err):
			lost++
		case err != nil:
			return "", lost, k.failure("read", s.Place, err)
		case !k.matches(s.New, now):
			return fmt.Sprintf("%s of %s is %s, not %s", s.Knob, s.Place, now, s.New), lost, nil
		}
	}
	return "", lost, nil
}
