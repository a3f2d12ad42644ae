// SPDX-License-Identifier: Apache-2.0

package search

import (
	"errors"
	"fmt"
	"math"
)

// Kind is what values a knob takes.
type Kind int

// The kinds.
const (
	// Real: any number from Min to Max.
	Real Kind = iota
	// Integer: whole numbers from Min to Max.
	Integer
	// Choice: one of Choices that have no order, as their index from 0.
	Choice
)

// Knob is one dimension of a search.
type Knob struct {
	// Name is for messages.
	Name string
	// Kind of its values.
	Kind Kind
	// Min and Max bound numbers.
	Min, Max float64
	// Log says that factors count and not differences; Min is above 0 then.
	Log bool
	// Choices is how many there are.
	Choices int
}

// Point is a value for each knob, in their order.
type Point []float64

// check says what is wrong with a knob.
func (k Knob) check() error {
	finite := !math.IsInf(k.Max-k.Min, 0) && !math.IsNaN(k.Max-k.Min)
	switch {
	case k.Kind == Choice && k.Choices < 1:
		return fmt.Errorf("knob %q has no choices", k.Name)
	case k.Kind == Choice:
		return nil
	case k.Kind != Real && k.Kind != Integer:
		return fmt.Errorf("knob %q is of no kind", k.Name)
	case !finite || k.Max < k.Min:
		return fmt.Errorf("knob %q: %v to %v is no range", k.Name, k.Min, k.Max)
	case k.Log && k.Min <= 0:
		return fmt.Errorf("knob %q: a logarithmic range begins above 0, not at %v", k.Name, k.Min)
	case k.Kind == Integer && (k.Min != math.Trunc(k.Min) || k.Max != math.Trunc(k.Max)):
		return fmt.Errorf("knob %q: %v to %v are no integers", k.Name, k.Min, k.Max)
	}
	return nil
}

// has reports whether v is a value of the knob.
func (k Knob) has(v float64) bool {
	if k.Kind == Choice {
		return v == math.Trunc(v) && v >= 0 && v < float64(k.Choices)
	}
	return v >= k.Min && v <= k.Max && (k.Kind == Real || v == math.Trunc(v))
}

// scale returns the range on the scale that counts. Each integer has as much of
// it as half-way to its neighbours.
func (k Knob) scale() (low, high float64) {
	low, high = k.Min, k.Max
	if k.Kind == Integer {
		low, high = low-0.5, high+0.5
	}
	if k.Log {
		return math.Log(low), math.Log(high)
	}
	return low, high
}

// value returns the value at u, from 0 to 1.
func (k Knob) value(u float64) float64 {
	if k.Kind == Choice {
		return min(math.Floor(u*float64(k.Choices)), float64(k.Choices-1))
	}
	low, high := k.scale()
	v := low + u*(high-low)
	if k.Log {
		v = math.Exp(v)
	}
	if k.Kind == Integer {
		v = math.Round(v)
	}
	return min(max(v, k.Min), k.Max)
}

// position returns where a value lies, from 0 to 1.
func (k Knob) position(v float64) float64 {
	if k.Kind == Choice {
		return (v + 0.5) / float64(k.Choices)
	}
	low, high := k.scale()
	if k.Log {
		v = math.Log(v)
	}
	if high == low {
		return 0.5
	}
	return (v - low) / (high - low)
}

// space is all knobs together.
type space []Knob

var errNoKnobs = errors.New("search: no knobs")

func (s space) check() error {
	if len(s) == 0 {
		return errNoKnobs
	}
	for _, k := range s {
		if err := k.check(); err != nil {
			return fmt.Errorf("search: %w", err)
		}
	}
	return nil
}

// point returns the values at a place in the unit cube.
func (s space) point(unit []float64) Point {
	p := make(Point, len(s))
	for i, k := range s {
		p[i] = k.value(unit[i])
	}
	return p
}

// unit is the inverse of point, as far as values are not rounded.
func (s space) unit(p Point) []float64 {
	u := make([]float64, len(s))
	for i, k := range s {
		u[i] = k.position(p[i])
	}
	return u
}

// features returns a point as a kernel measures distances: choices have an axis
// each, and any two of them are one apart.
func (s space) features(p Point) []float64 {
	var out []float64
	for i, k := range s {
		if k.Kind != Choice {
			out = append(out, k.position(p[i]))
			continue
		}
		for choice := range k.Choices {
			on := 0.0
			if int(p[i]) == choice {
				on = math.Sqrt2 / 2
			}
			out = append(out, on)
		}
	}
	return out
}
