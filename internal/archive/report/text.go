// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/attune-hpc/attune/internal/archive"
	"github.com/attune-hpc/attune/internal/printable"
	"github.com/attune-hpc/attune/internal/quantity"
)

// shades are the bars of a histogram in one line of text, from none to many.
var shades = []rune(" ▁▂▃▄▅▆▇█")

// WriteText writes the report for a terminal. Control characters in what others chose are
// replaced.
func (r *Report) WriteText(w io.Writer) error {
	var out bytes.Buffer
	fmt.Fprintln(&out, r.headline())
	if r.Tasks > 0 {
		r.writeSections(&out)
	}
	_, err := w.Write(out.Bytes())
	return err
}

func (r *Report) writeSections(out *bytes.Buffer) {
	fmt.Fprintln(out, r.span())
	for _, s := range r.Sections {
		fmt.Fprintln(out)
		s.writeText(out)
	}
	if rest := len(r.Rows) + r.MoreRows - len(r.Sections); rest > 0 {
		fmt.Fprintf(out, "\n%d more categories, whose tasks ran for less time: attune archive list --categories\n", rest)
	}
}

func (r *Report) headline() string {
	if r.Tasks == 0 {
		return "no tasks: attune account --archive -- CMD adds one, attune archive import FILE those of other tools"
	}
	return fmt.Sprintf("%d tasks in %d categories, %d failed; %s of time, %s of CPU time", r.Tasks, len(r.Rows)+r.MoreRows, r.Failed,
		quantity.Seconds(r.Wall), quantity.Seconds(r.CPU))
}

func (r *Report) span() string {
	return fmt.Sprintf("from %s to %s", r.First.Local().Format(time.DateTime), r.Last.Local().Format(time.DateTime))
}

func (s *Section) writeText(out *bytes.Buffer) {
	title := printable.Line(s.Name) + "  " + s.ID[:8]
	if s.Pattern != s.Name {
		title += "  " + printable.Line(s.Pattern)
	}
	fmt.Fprintln(out, title)
	fmt.Fprintf(out, "  %d tasks, %d failed, %s of time, %s of CPU time\n", s.Tasks, s.Failed, quantity.Seconds(s.WallSeconds), quantity.Seconds(s.CPU))
	table := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "  \tLEAST\tMEDIAN\t95 %\tMOST\tSKEWNESS\tDISTRIBUTION")
	for _, c := range s.Charts {
		skewness := "-"
		if c.Skewness != nil {
			skewness = fmt.Sprintf("%.1f", *c.Skewness)
		}
		fmt.Fprintf(table, "  %s\t%s\t%s\t%s\t%s\t%s\t%s\n", c.Title, c.say(c.Least), c.say(c.Quantiles[2].Value), c.say(c.Quantiles[4].Value),
			c.say(c.Most), skewness, bars(c.Histogram))
	}
	_ = table.Flush() // a buffer takes all
	for _, u := range s.Asked {
		fmt.Fprintf(out, "  %s\n", u.text())
	}
	for _, o := range s.Outliers {
		fmt.Fprintf(out, "  unlike the others: task %s, %s %s where the median is %s\n", o.ID[:8], strings.ToLower(o.Title), o.say(o.Value), o.say(o.Median))
	}
	if s.Next != nil {
		fmt.Fprintf(out, "  next time ask for %s\n", nextText(s.Next))
	}
}

func (c Chart) say(v float64) string   { return quantity.Field(c.Field, v) }
func (o Outlier) say(v float64) string { return quantity.Field(o.Field, v) }

// text says how much was used, and of what costs others something what was in vain.
func (u Use) text() string {
	text := fmt.Sprintf("%s: %.0f %% used of what was asked for", u.Name, 100*u.Share())
	wasted := max(u.Asked-u.Used, 0) / 3600
	switch u.Name {
	case "memory", "disk":
		return text + ", " + quantity.Number(wasted/1e9) + " GBh in vain"
	case "cores":
		return text + ", " + quantity.Number(wasted) + " core hours in vain"
	}
	return text
}

// nextText is an estimate in a line.
func nextText(e *archive.Estimate) string {
	var parts []string
	if e.MemoryBytes != nil {
		parts = append(parts, quantity.Bytes(e.MemoryBytes.Value)+" of memory")
	}
	if e.Cores != nil {
		parts = append(parts, fmt.Sprintf("%.0f cores", e.Cores.Value))
	}
	if e.WallSeconds != nil {
		parts = append(parts, quantity.Seconds(e.WallSeconds.Value))
	}
	if e.DiskBytes != nil {
		parts = append(parts, quantity.Bytes(e.DiskBytes.Value)+" of disk")
	}
	return strings.ReplaceAll(strings.Join(parts, ", "), " 1 cores", " 1 core")
}

// bars is a histogram in a line.
func bars(bins []archive.Bin) string {
	most := 1
	for _, b := range bins {
		most = max(most, b.Tasks)
	}
	var out strings.Builder
	for _, b := range bins {
		out.WriteRune(shades[(b.Tasks*(len(shades)-1)+most-1)/most])
	}
	return out.String()
}
