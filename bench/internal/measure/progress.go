// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"errors"
	"regexp"
	"strconv"
	"time"
)

// ErrNoRate is returned when a program's output does not say how far it got.
var ErrNoRate = errors.New("the program's output has no total")

// Format says how a program writes how far it got.
type Format struct {
	start *regexp.Regexp
	total *regexp.Regexp
}

// Native returns the format of the workloads in this repository: "start",
// then "progress SECONDS ITERATIONS", then "total SECONDS ITERATIONS".
func Native() Format {
	return Format{
		start: regexp.MustCompile(`^start$`),
		total: regexp.MustCompile(`^total (?P<seconds>\S+) (?P<count>\d+)$`),
	}
}

// LAMMPS returns the format of LAMMPS' standard output: the head of the
// thermodynamic table, and the summary behind it.
func LAMMPS() Format {
	return Format{
		start: regexp.MustCompile(`^\s*CPU\s+Step\b`),
		total: regexp.MustCompile(`^Loop time of (?P<seconds>\S+) on \d+ procs for (?P<count>\d+) steps`),
	}
}

// Rate returns the iterations per second over a whole run.
func (f Format) Rate(r Result) (float64, error) {
	for _, line := range r.Lines {
		m := f.total.FindStringSubmatch(line.Text)
		if m == nil {
			continue
		}
		seconds, err := strconv.ParseFloat(m[f.total.SubexpIndex("seconds")], 64)
		if err != nil || seconds <= 0 {
			return 0, ErrNoRate
		}
		count, err := strconv.ParseFloat(m[f.total.SubexpIndex("count")], 64)
		return count / seconds, err
	}
	return 0, ErrNoRate
}

// Beginning returns when the program's main loop began, to the accuracy with
// which its output arrives; when the output does not say, when the program was
// started.
func (f Format) Beginning(r Result) time.Time {
	for _, line := range r.Lines {
		if f.start.MatchString(line.Text) {
			return line.At
		}
	}
	return r.Started
}
