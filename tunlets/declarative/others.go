// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"math"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

// others knows the least and the greatest value of a signal among the processes
// of a host other than one of them: of those whose samples come, which is since
// they met a condition of waking. It looks at all of them once in a round for
// each signal, however many ask.
type others struct {
	known map[othersKey]extremes
}

type othersKey struct {
	host   string
	signal sdk.Signal
}

// extremes are the two least and the two greatest values, with whose the first
// of them is: without that one, the second counts.
type extremes struct {
	least, greatest           [2]float64
	leastOwner, greatestOwner sdk.Handle
}

func noExtremes() extremes {
	inf := math.Inf(1)
	return extremes{least: [2]float64{inf, inf}, greatest: [2]float64{-inf, -inf}}
}

// forget forgets all: a new round begins.
func (o *others) forget() { o.known = nil }

// among returns the extremes of a signal among the others; false: there are none.
func (o *others) among(w *watch, signal sdk.Signal) (least, greatest float64, ok bool) {
	key := othersKey{w.process.Host, signal}
	e, ok := o.known[key]
	if !ok {
		e = noExtremes()
		for other := range w.tunlet.watches.All() {
			if other.process.Host == key.host && other.heard.Equal(w.heard) {
				e.add(other, signal)
			}
		}
		if o.known == nil {
			o.known = map[othersKey]extremes{}
		}
		o.known[key] = e
	}
	return e.without(w.handle())
}

func (e *extremes) add(w *watch, signal sdk.Signal) {
	v, ok := w.window.Last(signal)
	if !signal.Gauge() {
		span, long := w.span()
		v, ok = span.Rate(signal)
		ok = ok && long
	}
	if !ok {
		return
	}
	e.leastOwner = rank(&e.least, v, -1, e.leastOwner, w.handle())
	e.greatestOwner = rank(&e.greatest, v, 1, e.greatestOwner, w.handle())
}

// rank puts a value among the first two in the direction of sign, and returns
// whose the first one is. Of equal values, the one with the lower handle's is
// first, so that the order of looking does not matter.
func rank(first *[2]float64, v, sign float64, owner, of sdk.Handle) sdk.Handle {
	switch ahead := sign * (v - first[0]); {
	case ahead > 0 || ahead == 0 && of < owner:
		first[0], first[1] = v, first[0]
		return of
	case sign*(v-first[1]) > 0:
		first[1] = v
	}
	return owner
}

func (e extremes) without(p sdk.Handle) (least, greatest float64, ok bool) {
	least, greatest = e.least[0], e.greatest[0]
	if p == e.leastOwner {
		least = e.least[1]
	}
	if p == e.greatestOwner {
		greatest = e.greatest[1]
	}
	return least, greatest, !math.IsInf(least, 0) && !math.IsInf(greatest, 0)
}

// others is how many other processes of the host have the symptom, or had it when a
// change of them was kept: who divides something up must leave them their parts.
func (w *watch) others() (count float64) {
	for other := range w.tunlet.watches.All() {
		if other != w && other.process.Host == w.process.Host && (other.kept || other.active()) {
			count++
		}
	}
	return count
}
