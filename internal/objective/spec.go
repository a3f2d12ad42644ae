// SPDX-License-Identifier: Apache-2.0

package objective

import (
	"regexp"
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Kind says where an objective is measured.
type Kind string

// The kinds, as they are written.
const (
	// Output is what the application writes to standard output and standard error, as far as these are
	// regular files.
	Output Kind = "output"
	// File is a file that the application writes.
	File Kind = "file"
	// Point is a measure point.
	Point Kind = "point"
	// Command is a command that prints a number.
	Command Kind = "command"
)

var kinds = []Kind{Output, File, Point, Command}

// Meaning says what a number means that is found in a line or printed.
type Meaning string

// The meanings, as they are written.
const (
	// Matches: there is no number. Each line that matches, or each call, is one unit of work.
	Matches Meaning = ""
	// Value: the number is the objective.
	Value Meaning = "value"
	// Rate: the number is a running total; by how much it rises in a second is the objective.
	Rate Meaning = "rate"
	// Sum: the number is so much work done; how much of it there is in a second is the objective.
	Sum Meaning = "sum"
)

// Spec is what the owner wants to be better.
type Spec struct {
	// Name is how people call it.
	Name string
	// Lower says that less is better.
	Lower bool
	// Kind is where it is measured, and Meaning what is found there.
	Kind    Kind
	Meaning Meaning
	// Path is the file of a File.
	Path string
	// Pattern finds it in lines, of Output and File.
	Pattern *regexp.Regexp
	// Point is the measure point of a Point.
	Point *attunev1.MeasurePoint
	// Command is that of a Command, for sh, and Every how long after the beginning of
	// one it runs again.
	Command string
	Every   time.Duration
}

// Objective is what the Analyzer is told.
func (s Spec) Objective() *attunev1.Objective {
	o := &attunev1.Objective{Name: s.Name, LowerIsBetter: s.Lower, Description: s.describe()}
	if s.Meaning != Value {
		o.Unit = "1/s"
	}
	return o
}

// describe says in a sentence what is measured.
func (s Spec) describe() string {
	where := map[Kind]string{
		Output: "in the output", File: "in " + s.Path, Command: "printed by " + shorten(s.Command),
	}[s.Kind]
	if s.Kind == Command && s.Name == shorten(s.Command) {
		where = "that it prints"
	}
	switch s.Meaning {
	case Value:
		return "the number " + where
	case Rate:
		return "how fast the number " + where + " rises"
	case Sum:
		return "the sum of the numbers " + where + ", per second"
	}
	if s.Kind == Point {
		return "calls per second"
	}
	return "matches " + where + " per second"
}
