// SPDX-License-Identifier: Apache-2.0

package trials

import "github.com/attune-hpc/attune/tunlets/sdk"

const (
	// measuredSeconds and measuredCalls are what is to be seen with a value and
	// without it before they are compared: a second has dozens of time slices, and a
	// call that is counted in the next interval is to matter little. A trial may begin
	// after readySeconds: it is compared with what comes between its turns as well.
	measuredSeconds = 2.0
	readySeconds    = 1.0
	measuredCalls   = 20
	// leastSeconds is how much has to be seen of what ended before that.
	leastSeconds = 0.3
	// baselineSeconds is how much of the time before a trial counts: what is older may
	// be another phase of the program.
	baselineSeconds = 4.0
	// partSeconds and partCalls are what a rate takes.
	partSeconds = 0.15
	partCalls   = 5
	// mostForeign is how many intervals may have a value that nobody asked for: the
	// last ones before a change are told late.
	mostForeign = 20
)

// counted is what was counted in some time.
type counted struct{ calls, seconds float64 }

// meter parts calls by the value that the variable had. Those of one call's length
// on both sides of a change are left out, and so is what cannot be told.
type meter struct {
	original, tried uint64
	trying          bool // what has the tried value counts

	off, on []counted
	last    uint64  // value of the latest calls
	known   bool    // there is one
	mixed   bool    // the latest calls had different ones
	idle    float64 // seconds since then without a call
	foreign int     // intervals with any other value, or without a trial with several, since the trial began
}

// add takes an interval in which the function was called so often, with values from
// low to high.
func (m *meter) add(calls, low, high uint64, seconds float64) {
	if calls == 0 {
		m.idle += seconds
		return
	}
	idle, mixed, same := m.idle, m.mixed, m.known && low == m.last
	m.idle, m.mixed, m.known, m.last = 0, low != high, true, high
	if low != high && !m.trying {
		m.foreign++
	}
	if low != high || !same && !mixed {
		return // it changed within this interval
	}
	if same && !mixed { // calls that take longer than intervals
		seconds += idle
	}
	one := counted{float64(calls), seconds}
	switch {
	case low == m.original:
		m.off = append(m.off, one)
		m.trim()
	case low != m.tried:
		m.foreign++
	case m.trying:
		m.on = append(m.on, one)
	}
}

// trim leaves the latest baseline, as long as it is not compared with anything.
func (m *meter) trim() {
	all := total(m.off)
	for len(m.on) == 0 && len(m.off) > 1 && all.seconds-m.off[0].seconds >= baselineSeconds {
		all.seconds -= m.off[0].seconds
		m.off = m.off[1:]
	}
}

// restart begins anew with what the variable is now.
func (m *meter) restart() { *m = meter{original: m.last, tried: m.last, last: m.last, known: m.known} }

// try begins a trial: the baseline is what was last seen without it.
func (m *meter) try(tried uint64) {
	m.tried, m.trying, m.on, m.foreign = tried, true, nil, 0
}

// end ends it. What is seen of its value later counts no more.
func (m *meter) end() { m.trying, m.on, m.off = false, nil, nil }

// ready says that there is enough to compare a trial with.
func (m *meter) ready() bool {
	return m.known && !m.mixed && m.last == m.original && total(m.off).enough(readySeconds)
}

// measured says that there is enough of both sides.
func (m *meter) measured() bool {
	return total(m.on).enough(measuredSeconds) && total(m.off).enough(measuredSeconds)
}

// disturbed says that somebody else changes the variable.
func (m *meter) disturbed() bool { return m.foreign > mostForeign }

// gain is how many times more calls a second there are with the value than without
// it; false if too little is known.
func (m *meter) gain() (float64, bool) {
	on, off := total(m.on), total(m.off)
	if on.seconds < leastSeconds || off.seconds < leastSeconds || off.calls == 0 {
		return 0, false
	}
	return rate(m.on) / rate(m.off), true
}

// rate is the typical number of calls per second: the median over parts of the time
// that are long enough to have a rate, lest a disturbance of one of them decides.
func rate(list []counted) float64 {
	var rates []float64
	var part counted
	for _, one := range list {
		part.calls += one.calls
		part.seconds += one.seconds
		if part.seconds >= partSeconds && part.calls >= partCalls {
			rates = append(rates, part.calls/part.seconds)
			part = counted{}
		}
	}
	if len(rates) == 0 {
		all := total(list)
		return all.calls / all.seconds
	}
	return sdk.Median(rates)
}

func (c counted) enough(seconds float64) bool {
	return c.seconds >= seconds && c.calls >= measuredCalls
}

func total(list []counted) (sum counted) {
	for _, one := range list {
		sum.calls += one.calls
		sum.seconds += one.seconds
	}
	return sum
}
