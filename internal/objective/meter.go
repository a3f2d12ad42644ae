// SPDX-License-Identifier: Apache-2.0

package objective

import (
	"fmt"
	"time"
)

// meter turns what is found into values of the objective.
type meter struct {
	meaning Meaning
	from    time.Time // the present interval began; zero: nothing was found yet
	total   float64   // of Rate, at from
	rising  int       // values of Value in a row that rose, and nothing else
	hint    string    // for people; empty: there is none, or it was taken
}

// suspicious is how many values in a row that rise are more probably a running total.
const suspicious = 30

// take takes what was found up to a time, in its order, and returns the value over the interval that ends
// there. The first interval begins where something is found first: what a program does
// before its work is not of the objective.
func (m *meter) take(found []float64, at time.Time) (value float64, known bool) {
	if m.meaning == Value || m.meaning == Rate {
		return m.takeNumber(found, at)
	}
	if m.from.IsZero() {
		if len(found) > 0 {
			m.from = at
		}
		return 0, false
	}
	var amount float64
	for _, one := range found {
		amount += one
	}
	return m.perSecond(amount, at)
}

// perSecond ends an interval in which so much was done.
func (m *meter) perSecond(amount float64, at time.Time) (value float64, known bool) {
	seconds := at.Sub(m.from).Seconds()
	if seconds <= 0 {
		return 0, false
	}
	m.from = at
	return amount / seconds, true
}

func (m *meter) takeNumber(found []float64, at time.Time) (value float64, known bool) {
	if len(found) == 0 {
		return 0, false
	}
	last := found[len(found)-1]
	before, began := m.total, !m.from.IsZero()
	m.total = last
	if m.meaning == Value {
		m.suspect(before, last)
		var sum float64
		for _, one := range found {
			sum += one
		}
		m.from = at
		return sum / float64(len(found)), true
	}
	if !began || last < before { // it begins anew
		m.from = at
		return 0, false
	}
	return m.perSecond(last-before, at)
}

// suspect looks for a value that is a running total.
func (m *meter) suspect(before, now float64) {
	if m.from.IsZero() || now <= before {
		m.rising = 0
		return
	}
	if m.rising++; m.rising == suspicious {
		m.hint = fmt.Sprintf("the last %d numbers rose each time: if they are a running total, write rate in front", suspicious)
	}
}

// skip forgets the present interval: what happened in it is not known.
func (m *meter) skip(at time.Time) {
	if !m.from.IsZero() && m.meaning != Value {
		m.from = at
	}
	if m.meaning == Rate {
		m.from = time.Time{}
	}
}
