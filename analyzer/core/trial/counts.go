// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"math"
	"slices"
)

const (
	// leastEvents is the least number of events, with and without the change together,
	// that say anything: with fewer, even all of them on one side are chance in more
	// than one of 500 cases.
	leastEvents = 10
	// steadyPairs is how many pairs it takes to believe that events come more evenly
	// than at random.
	steadyPairs = 8
	// leastDispersion bounds how evenly: of what is counted in whole events, fractions
	// of one are not seen.
	leastDispersion = 0.05
	// lullChance is how improbable idleness has to be to be a lull of the application.
	lullChance = 1e-3
)

// sum is what was seen of an objective in some samples. Of a rate of events, amount is
// their number.
type sum struct {
	amount, seconds float64
	moving, windows int // samples with progress, and all
}

// sumOf sums samples up whose intervals are known.
func sumOf(points []point) (s sum) {
	for _, one := range points {
		if one.at == one.from {
			continue
		}
		seconds := (one.at - one.from).Seconds()
		s.amount += one.value * seconds
		s.seconds += seconds
		s.windows++
		if one.value != 0 {
			s.moving++
		}
	}
	return s
}

// add returns both sums together.
func (s sum) add(o sum) sum {
	return sum{s.amount + o.amount, s.seconds + o.seconds, s.moving + o.moving, s.windows + o.windows}
}

// rate returns the mean over the whole time.
func (s sum) rate() float64 {
	if s.seconds == 0 {
		return 0
	}
	return s.amount / s.seconds
}

// sparse reports whether in a quarter of the samples, or more, nothing happened. What
// did is counted: medians of such samples tell how long they are, not what is achieved.
func (s sum) sparse() bool {
	return s.moving < s.windows && 4*(s.windows-s.moving) >= s.windows
}

// usualAmount returns what a sample with progress usually sees: the size of an event, or
// of several that come together; 0 without any.
func usualAmount(points []point) float64 {
	var amounts []float64
	for _, one := range points {
		if one.value > 0 && one.at > one.from {
			amounts = append(amounts, one.value*(one.at-one.from).Seconds())
		}
	}
	if len(amounts) == 0 {
		return 0
	}
	slices.Sort(amounts)
	return amounts[(len(amounts)-1)/2]
}

// counts compares events without and with a change: two Poisson rates, of which the
// share of the events that fall to one side is binomial. Events of programs are not
// independent. How much more or less they vary than such (the dispersion) is seen in
// pairs of neighbouring stretches of time, of both sides and of one (quasi-likelihood:
// McCullagh and Nelder, Generalized Linear Models, section 4.5; that the pairs are strata
// and that both kinds are pooled is our own). The interval is that of Wilson's score.
type counts struct {
	off, on    sum
	size       float64 // of an event, see usualAmount
	dispersion float64
	freedom    float64 // degrees of freedom of the dispersion
}

// stretches are two neighbouring stretches of time.
type stretches struct{ first, second sum }

// neighbours returns samples in pairs, each as a stretch of its own.
func neighbours(points []point) (pairs []stretches) {
	for two := range slices.Chunk(points, 2) {
		if len(two) == 2 {
			pairs = append(pairs, stretches{sumOf(two[:1]), sumOf(two[1:])})
		}
	}
	return pairs
}

// quarters returns the two halves of samples, and those of each half.
func quarters(points []point) (pairs []stretches) {
	n := len(points)
	for _, part := range [][]point{points, points[:n/2], points[n/2:]} {
		pairs = append(pairs, stretches{sumOf(part[:len(part)/2]), sumOf(part[len(part)/2:])})
	}
	return pairs
}

// newCounts compares events of size in pairs (first without, second with the change),
// and takes from pairs of the same side how the application varies by itself.
func newCounts(pairs, same []stretches, size float64) counts {
	c := counts{size: size, dispersion: 1}
	for _, one := range pairs {
		c.off, c.on = c.off.add(one.first), c.on.add(one.second)
	}
	if size == 0 {
		return c
	}
	ratio := (c.on.amount/size + 0.5) / max(c.on.seconds, 1e-9) / ((c.off.amount/size + 0.5) / max(c.off.seconds, 1e-9))
	between, n := deviance(pairs, ratio, size)
	within, m := deviance(same, 1, size)
	c.freedom = max(1, n-1+m)
	c.dispersion = (between + within) / c.freedom
	least := 1.0
	if len(pairs) >= steadyPairs {
		least = leastDispersion
	}
	c.dispersion = max(c.dispersion, least)
	return c
}

// deviance returns Pearson's statistic of the way in which events are shared between
// the stretches of each pair, the second having ratio times the rate of the first, and
// how many pairs have any.
func deviance(pairs []stretches, ratio, size float64) (chi2, used float64) {
	for _, one := range pairs {
		first, second := one.first.amount/size, one.second.amount/size
		n, share := first+second, ratio*one.second.seconds/(ratio*one.second.seconds+one.first.seconds)
		if n > 0 && share > 0 && share < 1 {
			chi2 += (second - n*share) * (second - n*share) / (n * share * (1 - share))
			used++
		}
	}
	return chi2, used
}

// events returns how many independent events there are as good as.
func (c counts) events() float64 {
	if c.size == 0 {
		return 0
	}
	return (c.off.amount + c.on.amount) / c.size / c.dispersion
}

// moving and windows return in how many samples something happened, and of how many.
func (c counts) moving() int  { return c.off.moving + c.on.moving }
func (c counts) windows() int { return c.off.windows + c.on.windows }

// enough reports whether there are so many events that they say anything.
func (c counts) enough() bool {
	return c.moving() >= leastEvents && c.events() >= leastEvents
}

// ratio returns how many times the rate without the change that with it is, and the
// 95 % confidence interval.
func (c counts) ratio() (ratio, low, high float64) {
	n := c.events()
	if n == 0 || c.off.seconds == 0 || c.on.seconds == 0 {
		return 1, 0, math.Inf(1)
	}
	share, z := c.on.amount/(c.on.amount+c.off.amount), quantile(c.freedom)
	middle, half := share+z*z/(2*n), z*math.Sqrt(share*(1-share)/n+z*z/(4*n*n))
	times := c.off.seconds / c.on.seconds
	odds := func(share float64) float64 {
		if share >= 1 {
			return math.Inf(1)
		}
		return max(0, share) / (1 - share) * times
	}
	low, high = odds((middle-half)/(1+z*z/n)), odds((middle+half)/(1+z*z/n))
	ratio = gain(c.off.rate(), c.on.rate(), false)
	return ratio, min(low, ratio), max(high, ratio)
}

// more returns the probability of so many events with the change, in comparison to those
// without, if it has no more than least times the rate: by the test of the score that the
// interval belongs to.
func (c counts) more(least float64) float64 {
	n := c.events()
	if n == 0 || c.off.seconds == 0 || c.on.seconds == 0 {
		return 1
	}
	share, chance := c.on.amount/(c.on.amount+c.off.amount), least*c.on.seconds/(least*c.on.seconds+c.off.seconds)
	return tail((share-chance)*math.Sqrt(n/(chance*(1-chance))), c.freedom)
}

// visible returns the least ratio, above 1, that will be seen once there are times as
// many events, at the level of the last look.
func (c counts) visible(times float64) float64 {
	without, with := c.off.amount/max(c.size, 1e-300), c.on.amount/max(c.size, 1e-300)
	if c.size == 0 {
		without, with = 0, 0
	}
	deviation := math.Sqrt(c.dispersion / times * (1/(without+0.5) + 1/(with+0.5)))
	return math.Exp(quantileLast * deviation)
}

// lull reports whether nothing happened in some samples although so much had happened
// in earlier ones that it is no chance. A few rare events do not tell how rare they are.
func (s sum) lull(points []point) bool {
	if moved(points) || s.windows == 0 || s.sparse() && s.moving < leastEvents {
		return false
	}
	return math.Pow(1-float64(s.moving)/float64(s.windows), float64(len(points))) <= lullChance
}

const (
	// quantile95 and quantileLast are the two-sided 95 % quantile of the normal
	// distribution, and the one-sided one of the last look (significance).
	quantile95, quantileLast = 1.96, 2.326
)

// moved reports whether samples saw any progress.
func moved(points []point) bool {
	return slices.ContainsFunc(points, func(one point) bool { return one.value != 0 })
}
