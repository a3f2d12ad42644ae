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
	last    float64   // of Value, at from
	rising  int       // values of Value in a row that rose, and nothing else
	hint    string    // for people; empty: there is none, or it was taken

	totals map[*follower]float64 // of Rate, of each file; nil: the command's
	risen  float64               // by how much they rose since from
	rose   bool                  // it is known of one at least
}

// suspicious is how many values in a row that rise are more probably a running total.
const suspicious = 30

// take takes what was found up to a time, in its order, and returns the value over the interval that ends
// there. The first interval begins where something is found first: what a program does
// before its work is not of the objective.
func (m *meter) take(found []float64, at time.Time) (value float64, known bool) {
	switch m.meaning {
	case Value:
		return m.takeNumbers(found, at)
	case Rate: // see rise
		if !m.rose {
			return 0, false
		}
		return m.perSecond(m.risen, at)
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
	m.from, m.risen, m.rose = at, 0, false
	return amount / seconds, true
}

// rise takes the numbers of a running total, of which the last one counts. Where it begins, or begins
// anew, by how much it rose is not known; the interval begins there too, unless other
// totals are on their way.
func (m *meter) rise(of *follower, found []float64, at time.Time) {
	if m.meaning != Rate || len(found) == 0 {
		return
	}
	if m.totals == nil {
		m.totals = map[*follower]float64{}
	}
	now := found[len(found)-1]
	before, known := m.totals[of]
	m.totals[of] = now
	switch {
	case known && now >= before:
		m.risen += now - before
		m.rose = true
	case len(m.totals) == 1:
		m.from, m.risen, m.rose = at, 0, false
	}
}

func (m *meter) takeNumbers(found []float64, at time.Time) (value float64, known bool) {
	if len(found) == 0 {
		return 0, false
	}
	last := found[len(found)-1]
	m.suspect(m.last, last)
	var sum float64
	for _, one := range found {
		sum += one
	}
	m.last, m.from = last, at
	return sum / float64(len(found)), true
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

// skip forgets the present interval: what happened in it is not known. Values stand for
// themselves, and a total knows the rise when it is told again.
func (m *meter) skip(at time.Time) {
	if !m.from.IsZero() && m.meaning != Value && m.meaning != Rate {
		m.from = at
	}
}
