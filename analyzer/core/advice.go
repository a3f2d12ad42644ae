// SPDX-License-Identifier: Apache-2.0

package core

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// adviceID returns an id for what a proposal asks for, the same in another run:
// a hash of tunlet, knobs, actions and executables. It uses the executable's
// path, because its checksum may still be unknown, and leaves out the processes,
// and the threads and descriptors in them, so that neither the number of ranks nor
// the numbers that the kernel gave matter.
func (c *Core) adviceID(p *proposal) string { return c.hash(p, (*change).anywhere) }

// exactID is like adviceID, of the places that the proposal is about: in one run,
// another place is another proposal.
func (c *Core) exactID(p *proposal) string {
	return c.hash(p, func(ch *change) (name, action string) { return ch.spec.GetKnob(), ch.action })
}

// hash hashes what a proposal asks for, each kind of change once.
func (c *Core) hash(p *proposal, what func(*change) (name, action string)) string {
	var lines []string
	for _, ch := range p.changes {
		name, action := what(ch)
		lines = append(lines, name+"\x00"+action+"\x00"+c.processes.executable(ch.spec.GetProcess()))
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

// advise gives a proposal as advice, once for each place and scope.
func (c *Core) advise(p *proposal) {
	p.state, p.doneAt = StateAdvised, c.now
	p.reason = p.spec.GetReason()
	if !c.archive.advised(p) {
		c.archive.finish(p)
		c.record("advised", p, p.reason)
	}
	c.notify(p, "advice "+p.advice)
}

// number returns a value as a number, if it is one.
func number(v *attunev1.Value) (float64, bool) {
	switch k := v.GetKind().(type) {
	case *attunev1.Value_Integer:
		return float64(k.Integer), true
	case *attunev1.Value_Unsigned:
		return float64(k.Unsigned), true
	case *attunev1.Value_Real:
		return k.Real, true
	}
	return 0, false
}

// outOfBounds says why a value is not within a knob's bounds, or is not a
// number although the knob has bounds.
func outOfBounds(k *attunev1.Knob, v *attunev1.Value) string {
	if v == nil {
		return ""
	}
	n, numeric := number(v)
	if low, ok := number(k.GetMin()); ok && (!numeric || !(n >= low)) {
		return fmt.Sprintf("knob %s: %s is below the least allowed value %s", k.GetName(), attunev1.ValueLiteral(v), attunev1.ValueLiteral(k.GetMin()))
	}
	if high, ok := number(k.GetMax()); ok && (!numeric || !(n <= high)) {
		return fmt.Sprintf("knob %s: %s is above the greatest allowed value %s", k.GetName(), attunev1.ValueLiteral(v), attunev1.ValueLiteral(k.GetMax()))
	}
	return ""
}
