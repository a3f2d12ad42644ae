// SPDX-License-Identifier: Apache-2.0

package system

import "testing"

// partly is a place of which the kernel takes another value than it is given.
type partly struct{ now, taken string }

func (p *partly) get() (string, error) { return p.now, nil }
func (p *partly) Close() error         { return nil }

func (p *partly) set(value string) error {
	p.now = value
	if value == "4-11" {
		p.now = p.taken
	}
	return nil
}

// TestValueTakenInPart: a thread is not left with those of the CPUs that its cpuset allows.
func TestValueTakenInPart(t *testing.T) {
	place := &partly{now: "0-7", taken: "4-7"}
	p := &plan{knob: knob{open: func(*Target, Place) (slot, error) { return place, nil }}}
	if err := p.put(State{Old: "0-7", New: "4-11"}); err == nil || place.now != "0-7" {
		t.Errorf("%v, the place has %s, want 0-7", err, place.now)
	}
}
