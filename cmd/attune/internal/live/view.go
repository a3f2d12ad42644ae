// SPDX-License-Identifier: Apache-2.0

package live

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/analyzer/tunlethost"
	"github.com/attune-hpc/attune/internal/printable"
	"github.com/attune-hpc/attune/internal/quantity"
)

const (
	// height is how many lines the view takes.
	height = 6
	// shownObjectives and shownProposals are how many have a line.
	shownObjectives, shownProposals = 2, 2
	// past is how many values of an objective its curve shows.
	past = 32
)

// view turns snapshots into lines. It remembers the past of objectives.
type view struct {
	curves map[string][]float64
}

// lines renders a snapshot in height lines of at most width columns.
func (v *view) lines(s report.Snapshot, width int) []string {
	lines := []string{v.title(s)}
	lines = append(lines, points(s)...)
	lines = append(lines, v.objectives(s)...)
	lines = append(lines, proposals(s)...)
	for len(lines) < height {
		lines = append(lines, "")
	}
	for i, line := range lines {
		lines[i] = cut(line, width)
	}
	return lines
}

func (v *view) title(s report.Snapshot) string {
	var b strings.Builder
	fmt.Fprintf(&b, "── attune %s, %.0f s, %s", s.Mode, s.Seconds, quantity.Count(s.Processes, "process", "processes"))
	asleep := 0
	for _, t := range s.Tunlets {
		if t.State == tunlethost.StateAsleep {
			asleep++
			continue
		}
		fmt.Fprintf(&b, ", %s %s", t.Name, t.State)
	}
	if asleep > 0 {
		fmt.Fprintf(&b, ", %s asleep", quantity.Count(asleep, "tunlet", "tunlets"))
	}
	if lost := s.Events.Lost.Total(); lost > 0 {
		fmt.Fprintf(&b, ", %s events lost", number(float64(lost)))
	}
	return b.String() + " ──"
}

func points(s report.Snapshot) []string {
	if len(s.Points) == 0 {
		return []string{"measures  /proc only: nothing calls for more yet"}
	}
	var parts []string
	for _, p := range s.Points {
		parts = append(parts, fmt.Sprintf("%s %s/s (%s)", p.Target, number(p.PerSecond), p.Mechanism))
	}
	return []string{"measures  " + strings.Join(parts, ", ")}
}

func (v *view) objectives(s report.Snapshot) []string {
	before := v.curves
	v.curves = map[string][]float64{} // those without a value are over
	var lines []string
	for _, o := range s.Objectives {
		key := o.Tunlet + "\x00" + o.Name + "\x00" + o.Scope
		curve := before[key]
		curve = append(curve, o.Value)
		v.curves[key] = curve[max(0, len(curve)-past):]
		if len(lines) < shownObjectives {
			lines = append(lines, fmt.Sprintf("%-9s %s %s %s of %s",
				o.Tunlet, sparkline(v.curves[key]), number(o.Value), o.Unit, o.Scope))
		}
	}
	return lines
}

func proposals(s report.Snapshot) []string {
	var lines []string
	for _, p := range s.Proposals[max(0, len(s.Proposals)-shownProposals):] {
		line := fmt.Sprintf("%-9s %s in %s: %s", p.Tunlet, strings.Join(p.Knobs, ", "),
			quantity.Count(p.Processes, "process", "processes"), p.State)
		if p.Gain > 0 {
			line += fmt.Sprintf(", %.3gx", p.Gain)
		}
		if p.Reason != "" {
			line += " (" + p.Reason + ")"
		}
		lines = append(lines, line)
	}
	return lines
}

// sparkline draws values as a curve from 0 to their greatest.
func sparkline(values []float64) string {
	bars := []rune("▁▂▃▄▅▆▇█")
	top := 0.0
	for _, v := range values {
		top = max(top, v)
	}
	out := make([]rune, len(values))
	for i, v := range values {
		step := 0
		if top > 0 && v > 0 {
			step = min(int(v/top*float64(len(bars))), len(bars)-1)
		}
		out[i] = bars[step]
	}
	return string(out)
}

// number writes a value in three digits and a unit prefix.
func number(v float64) string {
	for _, step := range []struct {
		from   float64
		suffix string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if math.Abs(v) >= step.from {
			return fmt.Sprintf("%.3g %s", v/step.from, step.suffix)
		}
	}
	return fmt.Sprintf("%.3g", v)
}

// cut shortens a line to width columns, and takes out what would move the
// cursor: names come from programs.
func cut(line string, width int) string {
	line = printable.Line(line)
	if utf8.RuneCountInString(line) <= width {
		return line
	}
	runes := []rune(line)
	return string(runes[:max(0, width-1)]) + "…"
}
