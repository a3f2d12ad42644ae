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

// Format says how a program writes how far it got. The zero value is that of
// programs that do not: their rate is that of whole runs per second.
type Format struct {
	start    *regexp.Regexp
	progress *regexp.Regexp // with the groups "seconds" and "count"
	total    *regexp.Regexp
}

// Native returns the format of the workloads in this repository: "start",
// then "progress SECONDS ITERATIONS", then "total SECONDS ITERATIONS".
func Native() Format { return native }

var native = Format{
	start:    regexp.MustCompile(`^start$`),
	progress: regexp.MustCompile(`^progress (?P<seconds>\S+) (?P<count>\d+)$`),
	total:    regexp.MustCompile(`^total (?P<seconds>\S+) (?P<count>\d+)$`),
}

// LAMMPS returns the format of LAMMPS' standard output: the head of the
// thermodynamic table, and the summary behind it.
func LAMMPS() Format { return lammps }

var lammps = Format{
	start: regexp.MustCompile(`^\s*CPU\s+Step\b`),
	total: regexp.MustCompile(`^Loop time of (?P<seconds>\S+) on \d+ procs for (?P<count>\d+) steps`),
}

// Summary returns the format of a program that writes a summary line: total
// matches it, and has the groups "seconds" and "count", or "rate" alone. The
// last line that matches counts. The program's main loop begins when it starts.
func Summary(total string) Format { return Format{total: regexp.MustCompile(total)} }

// Rate returns the iterations per second over a whole run.
func (f Format) Rate(r Result) (float64, error) {
	if f.total == nil {
		return 1 / r.Wall.Seconds(), nil
	}
	for i := len(r.Lines) - 1; i >= 0; i-- {
		if m := f.total.FindStringSubmatch(r.Lines[i].Text); m != nil {
			return f.rate(m)
		}
	}
	return 0, ErrNoRate
}

// Reading is how far a program had got at some time.
type Reading struct {
	At    time.Time
	Count float64
}

// Progress returns what a program told on its way; nil where the format has no such lines. A line may arrive late, but not before it was written:
// the one that came soonest shows when the program's clock began.
func (f Format) Progress(r Result) (all []Reading) {
	if f.progress == nil {
		return nil
	}
	var began time.Time
	for _, line := range r.Lines {
		m := f.progress.FindStringSubmatch(line.Text)
		if m == nil {
			continue
		}
		seconds, err := time.ParseDuration(m[f.progress.SubexpIndex("seconds")] + "s")
		count, countErr := strconv.ParseFloat(m[f.progress.SubexpIndex("count")], 64)
		if err != nil || countErr != nil {
			continue
		}
		if start := line.At.Add(-seconds); began.IsZero() || start.Before(began) {
			began = start
		}
		all = append(all, Reading{time.Unix(0, 0).Add(seconds), count})
	}
	for i := range all {
		all[i].At = began.Add(all[i].At.Sub(time.Unix(0, 0)))
	}
	return all
}

// rate reads the line that says it.
func (f Format) rate(match []string) (float64, error) {
	if at := f.total.SubexpIndex("rate"); at >= 0 {
		return strconv.ParseFloat(match[at], 64)
	}
	seconds, err := strconv.ParseFloat(match[f.total.SubexpIndex("seconds")], 64)
	if err != nil || seconds <= 0 {
		return 0, ErrNoRate
	}
	count, err := strconv.ParseFloat(match[f.total.SubexpIndex("count")], 64)
	return count / seconds, err
}

// Beginning returns when the program's main loop began, to the accuracy with
// which its output arrives; when the output does not say, when the program was
// started.
func (f Format) Beginning(r Result) time.Time {
	if f.start == nil {
		return r.Started
	}
	for _, line := range r.Lines {
		if f.start.MatchString(line.Text) {
			return line.At
		}
	}
	return r.Started
}
