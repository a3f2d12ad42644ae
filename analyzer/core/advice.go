// SPDX-License-Identifier: Apache-2.0

package core

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// adviceID returns an id for what a proposal asks for, the same in another run:
// a hash of tunlet, knobs, actions and executables. It uses the executable's
// path, because its checksum may still be unknown, and leaves out the processes,
// and the threads and descriptors in them, so that neither the number of ranks nor
// the numbers that the kernel gave matter.
func (p *proposal) adviceID(executable func(process uint64) string) string {
	return p.hash(executable, (*change).anywhere)
}

// exactID is like adviceID, of the places that the proposal is about: in one run,
// another place is another proposal.
func (p *proposal) exactID(executable func(process uint64) string) string {
	return p.hash(executable, func(ch *change) (name, action string) { return ch.spec.GetKnob(), ch.action })
}

// hash hashes what a proposal asks for, each kind of change once.
func (p *proposal) hash(executable func(process uint64) string, what func(*change) (name, action string)) string {
	var lines []string
	for _, ch := range p.changes {
		name, action := what(ch)
		lines = append(lines, name+"\x00"+action+"\x00"+executable(ch.spec.GetProcess()))
	}
	slices.Sort(lines)
	lines = slices.Compact(lines)
	sum := sha256.Sum256([]byte(p.tunlet.name + "\x00" + strings.Join(lines, "\x00\x00")))
	return hex.EncodeToString(sum[:6])
}

// anywhere returns the knob of a change and its action without the place in the
// process that it is about.
func (ch *change) anywhere() (name, action string) {
	name, place, _ := strings.Cut(ch.spec.GetKnob(), placeMark)
	if s := ch.spec.GetAction().GetSystem(); s != nil && s.On != nil {
		place = fmt.Sprint(s.GetOn())
	}
	if place == "" {
		return name, ch.action
	}
	return name, strings.Replace(ch.action, placeMark+place+"=", "=", 1)
}
