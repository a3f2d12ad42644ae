// SPDX-License-Identifier: Apache-2.0

package sites

import (
	"errors"
	"fmt"
	"slices"

	"github.com/attune-hpc/attune/controller/patch"
)

// ErrConflict means that another action on the function excludes this one.
var ErrConflict = errors.New("another action on the function excludes it")

// doing is all that is done at one function. It is a value: methods return a
// changed copy.
type doing struct {
	entryNumbers, exitNumbers []uint32
	giver                     string       // of the numbers
	steps                     []patch.Step // in the order in which they came
}

// with is the same with one more action. [ErrConflict] where two exclude each
// other.
func (d doing) with(step patch.Step) (doing, error) {
	for _, other := range d.steps {
		if excludes(other, step) {
			return d, fmt.Errorf("%w: %q", ErrConflict, other.Name)
		}
	}
	d.steps = append(slices.Clone(d.steps), step)
	return d, nil
}

// excludes says whether not both can be done: a function is replaced or
// removed once, and a parameter gets one value.
func excludes(a, b patch.Step) bool {
	p, q := a.Parameter, b.Parameter
	if p != nil && q != nil {
		return p.Number == q.Number && p.Value.Class == q.Value.Class
	}
	return a.Instead() && b.Instead()
}

func (d doing) without(name string) doing {
	d.steps = slices.DeleteFunc(slices.Clone(d.steps), func(s patch.Step) bool { return s.Name == name })
	return d
}

func (d doing) has(name string) bool {
	return slices.ContainsFunc(d.steps, func(s patch.Step) bool { return s.Name == name })
}

// measured is the same with a number of a giver measured at the entry, the exits, both
// or neither.
func (d doing) measured(giver string, number uint32, entry, exits bool) doing {
	d.giver = giver
	d.entryNumbers = withNumber(d.entryNumbers, number, entry)
	d.exitNumbers = withNumber(d.exitNumbers, number, exits)
	return d
}

// numbers are all that are measured.
func (d doing) numbers() []uint32 {
	all := slices.Concat(d.entryNumbers, d.exitNumbers)
	slices.Sort(all)
	return slices.Compact(all)
}

// measures says whether a number is measured anywhere.
func (d doing) measures(number uint32) bool { return slices.Contains(d.numbers(), number) }

func withNumber(numbers []uint32, number uint32, wanted bool) []uint32 {
	numbers = slices.DeleteFunc(slices.Clone(numbers), func(n uint32) bool { return n == number })
	if wanted {
		numbers = append(numbers, number)
	}
	return numbers
}

// any says whether something is done at the entry, or at the exits.
func (d doing) any(entry bool) bool { return !d.at(entry).Idle() }

// at is the program for the entry, or for the exits.
func (d doing) at(entry bool) (p patch.Program) {
	p.Numbers = d.exitNumbers
	if entry {
		p.Numbers = d.entryNumbers
	}
	if len(p.Numbers) > 0 {
		p.Giver = d.giver
	}
	for _, step := range d.steps {
		if step.AtExit() != entry {
			p.Steps = append(p.Steps, step)
		}
	}
	return p
}
