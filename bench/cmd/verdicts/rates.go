// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"slices"
	"time"

	"github.com/attune-hpc/attune/bench/internal/measure"
	"github.com/attune-hpc/attune/bench/internal/present"
)

const (
	// starting is left out at the beginning of a program.
	starting = 500 * time.Millisecond
	// leastSeconds is for how long a program has to run with a change, and without it, to tell a
	// rate: two of its readings.
	leastSeconds = 0.2
)

// working returns the readings of a program that has begun its work.
func working(progress []measure.Reading) []measure.Reading {
	return slices.DeleteFunc(slices.Clone(progress), func(r measure.Reading) bool { return r.At.Sub(progress[0].At) < starting })
}

// stretch is how far a program got from one reading to the next, and for how many seconds of
// that a change was in force, and was not.
type stretch struct{ on, off, count float64 }

// split returns what of each reading lies on the sides, without readings of which more than a
// tenth does not.
func split(progress []measure.Reading, sides []side) (all []stretch) {
	for i := 1; i < len(progress); i++ {
		from, to := progress[i-1].At, progress[i].At
		s := stretch{count: progress[i].Count - progress[i-1].Count}
		for _, side := range sides {
			begin := slices.MaxFunc([]time.Time{from, side.from}, time.Time.Compare)
			end := slices.MinFunc([]time.Time{to, side.to}, time.Time.Compare)
			switch seconds := max(0, end.Sub(begin).Seconds()); {
			case side.on:
				s.on += seconds
			default:
				s.off += seconds
			}
		}
		if to.Sub(from).Seconds()-s.on-s.off < 0.1*to.Sub(from).Seconds() {
			all = append(all, s)
		}
	}
	return all
}

// compare returns the rate with the change over that without it, and for how many seconds each
// was seen. What happened in a stretch that has both is shared between them by the rates of the
// others, then by those that this gives, and so on.
func compare(all []stretch) (ratio present.Figure, on, off float64) {
	var with, without float64 // rates
	for range 10 {
		var onCount, offCount float64
		on, off = 0, 0
		for _, s := range all {
			share := s.on * with / (s.on*with + s.off*without)
			switch {
			case s.off == 0:
				share = 1
			case s.on == 0:
				share = 0
			case math.IsNaN(share): // not yet known
				continue
			}
			on, off = on+s.on, off+s.off
			onCount, offCount = onCount+share*s.count, offCount+(1-share)*s.count
		}
		with, without = onCount/on, offCount/off
	}
	if on < leastSeconds || off < leastSeconds {
		return present.Figure(math.NaN()), on, off
	}
	return present.Figure(with / without), on, off
}
