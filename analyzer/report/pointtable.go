// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/attune-hpc/attune/internal/hits"
	"github.com/attune-hpc/attune/internal/printable"
	"github.com/attune-hpc/attune/internal/quantity"
)

// OwnerName is in place of a tunlet's name for points that people asked for.
const OwnerName = "attune"

// ObjectiveAsker is in place of it for the point that is the owner's objective.
const ObjectiveAsker = OwnerName + " objective"

// WatchAsker is that of all who watch points from another command; at work each has a number
// behind it.
const WatchAsker = OwnerName + " watch"

// shownKeys is how many keys and values the text shows; the JSON document has
// all.
const shownKeys = 10

// points writes what the points of the owner measured; those of tunlets are for
// them.
func (p *printer) points(r *Report) {
	for i := range r.Points {
		pt := &r.Points[i]
		if pt.Tunlet != OwnerName && pt.Tunlet != ObjectiveAsker {
			continue
		}
		style, label := plain, "measured"
		if pt.State != "placed" {
			style, label = yellow, pt.State
		}
		p.line(2, style, label, "%s", pt.text())
		p.table(pt)
		for i := range pt.Captures {
			p.capture(&pt.Captures[i])
		}
		for _, s := range pt.Steps {
			p.line(4, plain, "", "after %s in process %d: %s", quantity.Seconds(r.intoCommand(s.Seconds)), s.Process, s.Text)
		}
	}
}

// text says in a line what came of a point.
func (pt *Point) text() string {
	var parts []string
	if pt.Hits > 0 || pt.State != "refused" && pt.State != "unanswered" {
		parts = append(parts, fmt.Sprintf("%d hits", pt.Hits))
	}
	if pt.Mechanism != "" {
		parts = append(parts, fmt.Sprintf("by %s (%s a hit)", pt.Mechanism, hits.Cost(pt.CostNanos, pt.CostMeasured)))
	}
	if pt.Processes > 1 {
		parts = append(parts, fmt.Sprintf("in %d processes", pt.Processes))
	}
	if late := time.Duration(pt.LateSeconds * 1e9); late >= hits.LeastLate {
		parts = append(parts, fmt.Sprintf("in place %s late", quantity.Seconds(pt.LateSeconds)))
	}
	if pt.Unreadable > 0 {
		parts = append(parts, fmt.Sprintf("%d unreadable", pt.Unreadable))
	}
	text := pt.ID
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	if why := hits.Unseen(pt.Mechanism, hits.Target(pt.ID)); why != "" && pt.Hits == 0 {
		text += ": " + why
	}
	if pt.Reason != "" {
		text += ": " + strings.ReplaceAll(pt.Reason, "\n", "; ")
	}
	return text
}

// table writes the values of aggregates, by key where there are keys.
func (p *printer) table(pt *Point) {
	if pt.Value == nil && len(pt.Keys) == 0 && pt.Rest == nil {
		return
	}
	t := newTable(pt.Key, pt.Value)
	for _, row := range pt.Keys[:min(shownKeys, len(pt.Keys))] {
		t.row(row.name(), row.Hits, row.Value)
	}
	if more := pt.Keys[min(shownKeys, len(pt.Keys)):]; len(more) > 0 {
		var rest uint64
		for _, row := range more {
			rest += row.Hits
		}
		t.row(fmt.Sprintf("(%d more)", len(more)), rest, nil)
	}
	if pt.Rest != nil {
		t.row("(others; keys N keeps more apart)", pt.Rest.Hits, pt.Rest.Value)
	}
	if pt.Key == "" || len(pt.Keys) > 1 {
		t.row("(all)", pt.summed(), pt.Value)
	}
	p.tableOf(t)
}

// summed is how many hits the aggregates stand for, in whatever state the point was.
func (pt *Point) summed() (n uint64) {
	if pt.Value != nil {
		return pt.Value.Count
	}
	for _, row := range pt.Keys {
		n += row.Hits
	}
	if pt.Rest != nil {
		n += pt.Rest.Hits
	}
	return n
}

// name is the key in a line.
func (r *KeyRow) name() string {
	if r.Stack != nil {
		return hits.ShowStack(r.Stack)
	}
	return r.Key.String()
}

// capture writes what one capture gave at single hits.
func (p *printer) capture(c *CaptureTally) {
	t := newTable(c.Name, nil)
	if c.Value != nil {
		t = newTable(c.Name, c.Value)
		t.row("(all)", c.Hits, c.Value)
	}
	// A list of values that came once each says nothing but what they look like.
	shown := min(shownKeys, len(c.Most))
	if len(c.Most) > 0 && c.Most[0].Hits == 1 {
		shown = min(3, shown)
	}
	rest := c.Others
	for i, v := range c.Most {
		if i < shown {
			t.row(valueText(v.Value, c.Value.unit(), true), v.Hits, nil)
		} else {
			rest += v.Hits
		}
	}
	if rest > 0 {
		t.row("(other values)", rest, nil)
	}
	if c.Unreadable > 0 {
		t.row("(unreadable)", c.Unreadable, nil)
	}
	p.tableOf(t)
}

// table is a table of hits and, where of is given, what is known of a value.
type table struct {
	buf    bytes.Buffer
	w      *tabwriter.Writer
	values bool
}

// newTable begins a table whose rows are named by a key.
func newTable(key string, of *Distribution) *table {
	t := &table{values: of != nil}
	t.w = tabwriter.NewWriter(&t.buf, 0, 8, 2, ' ', tabwriter.AlignRight)
	if fmt.Fprintf(t.w, "%s\thits\t", printable.Line(key)); of != nil {
		fmt.Fprintf(t.w, "%s\tleast\tmean\tp50\tp90\tp99\tgreatest\t", printable.Line("sum of "+of.Name))
	}
	fmt.Fprintln(t.w)
	return t
}

func (t *table) row(key string, n uint64, d *Distribution) {
	fmt.Fprintf(t.w, "%s\t%d\t", printable.Line(key), n)
	switch unit := d.unit(); {
	case t.values && d == nil:
		fmt.Fprint(t.w, strings.Repeat("\t", 4+len(percentiles))) // a column ends where a row lacks it
	case t.values:
		fmt.Fprintf(t.w, "%s\t%s\t%s\t", valueText(d.Sum, unit, false), valueText(d.Least, unit, false), meanText(d.Mean, unit))
		for i := range percentiles {
			text := ""
			if i < len(d.Percentiles) {
				text = "≤ " + valueText(d.Percentiles[i].AtMost, unit, false)
			}
			fmt.Fprintf(t.w, "%s\t", text)
		}
		fmt.Fprintf(t.w, "%s\t", valueText(d.Greatest, unit, false))
	}
	fmt.Fprintln(t.w)
}

// tableOf writes a table, which is not wrapped: a terminal does that.
func (p *printer) tableOf(t *table) {
	_ = t.w.Flush() // to memory
	for line := range strings.Lines(t.buf.String()) {
		fmt.Fprintf(&p.buf, "    %s\n", strings.TrimRight(line, " \n"))
	}
}

// unit is that of the values; of no values none.
func (d *Distribution) unit() string {
	if d == nil {
		return ""
	}
	return d.Unit
}

// valueText is a value for people.
func valueText(v Value, unit string, quoted bool) string {
	n, isCount := v.v.(uint64)
	text, isText := v.v.(string)
	switch {
	case unit == "ns" && isCount:
		return time.Duration(n).String()
	case quoted && isText:
		return fmt.Sprintf("%q", text)
	case !v.Known():
		return ""
	}
	return v.String()
}

func meanText(v *float64, unit string) string {
	switch {
	case v == nil:
		return ""
	case unit == "ns":
		return time.Duration(*v).String()
	}
	return figure(*v, 4)
}
