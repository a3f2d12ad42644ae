// SPDX-License-Identifier: Apache-2.0

package probeview

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/attune-hpc/attune/internal/hits"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// add adds an aggregate to the running interval.
func (p *Printer) add(stream int, named *attunev1.NamedAggregate) {
	a := named.GetAggregate()
	number, err := strconv.ParseUint(named.GetPointId(), 10, 32)
	at := p.points[place{stream, uint32(number)}]
	if err != nil || at == nil || a.GetCount()+a.GetUnreadable() == 0 {
		return
	}
	at.hit = true
	k := hits.KeyOf(a)
	if at.sums[k] == nil {
		at.sums[k] = &hits.Sum{Signed: at.signed()}
	}
	at.sums[k].Join(a)
	one := &hits.Sum{Signed: at.signed()}
	one.Join(a)
	p.stack(at, k, one)
}

// signed says whether the point's value may be negative.
func (at *point) signed() bool {
	return attunev1.SignedCapture(at.read.Spec, at.read.Spec.GetValueCapture())
}

// Flush shows what was counted since the last Flush, and begins anew. The last
// time nothing is shown of an interval that has just begun.
func (p *Printer) Flush(last bool) {
	now := p.options.now()
	from := p.since
	p.since = now
	rows := p.rows(from, now)
	if p.options.JSON {
		for _, r := range rows {
			p.line(r.json(from, now))
		}
		return
	}
	if len(rows) == 0 || last && !slices.ContainsFunc(rows, row.hit) {
		return
	}
	rows = p.top(rows)
	if p.options.Screen {
		fmt.Fprint(p.options.Output, clearScreen)
	}
	var table bytes.Buffer
	w := tabwriter.NewWriter(&table, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "%s\thits\t/s\tleast\tmean\tgreatest\tsum\t  process and point\n", now.Format("15:04:05"))
	for _, r := range rows {
		r.text(w)
	}
	_ = w.Flush() // to memory
	_, _ = p.options.Output.Write(p.cut(table.Bytes()))
	if p.options.Histogram {
		for _, r := range rows {
			fmt.Fprint(p.options.Output, r.bars())
		}
	}
}

// row is one point, or one key of it.
type row struct {
	at      *point
	key     hits.Key
	sum     *hits.Sum
	seconds float64 // that the point was in place
	part    bool    // of the interval only
	more    int     // keys that it has together; 0: it is one key's
	shown   string  // the key, for people
}

// rows lists what there is to show: every point that counts, its keys with the
// most hits first.
func (p *Printer) rows(from, to time.Time) (out []row) {
	for _, at := range p.sorted() {
		spec := at.read.Spec
		counts := spec.GetDelivery() == attunev1.Delivery_DELIVERY_AGGREGATE ||
			at.probe.GetStatus().GetDegradedTo() == attunev1.Delivery_DELIVERY_AGGREGATE
		placed := at.probe.GetStatus().GetState() == attunev1.PointState_POINT_STATE_PLACED
		if len(at.sums) == 0 && placed && counts && !at.ended {
			at.sums[hits.Key{}] = &hits.Sum{}
		}
		keys := slices.SortedFunc(maps.Keys(at.sums), func(a, b hits.Key) int {
			return cmp.Or(cmp.Compare(at.sums[b].Count, at.sums[a].Count), a.Compare(b))
		})
		in, part := at.on.end(from, to)
		for _, k := range keys {
			if counts { // else its hits are shown one by one
				out = append(out, row{at: at, key: k, sum: at.sums[k], seconds: in.Seconds(), part: part, shown: p.shown(at, k)})
			}
		}
		at.sums = make(map[hits.Key]*hits.Sum)
		if at.ended && len(p.gone) < mostGone {
			p.gone = append(p.gone, at)
		}
	}
	maps.DeleteFunc(p.points, func(_ place, at *point) bool {
		if at.ended && p.options.Ended != nil {
			p.options.Ended(at.probe.GetPid())
		}
		return at.ended
	})
	return out
}

func (r row) hit() bool { return r.sum.Count+r.sum.Unreadable > 0 }

// text writes a row of the table.
func (r row) text(w *tabwriter.Writer) {
	least, mean, most, total := "", "", "", ""
	if r.at.read.Value != "" && r.sum.Count > 0 {
		mean, total = r.number(r.sum.Mean()), r.value(r.sum.Total)
		if r.sum.Bounded {
			least, most = r.value(r.sum.Least), r.value(r.sum.Greatest)
		}
	}
	fmt.Fprintf(w, "\t%d\t%s\t%s\t%s\t%s\t%s\t  %s\n", r.sum.Count, r.rate(), least, mean, most, total, r.name())
}

// rate is that of the time in which the point was in place; empty where that is too
// short to tell.
func (r row) rate() string {
	const least = 1e-3
	if r.seconds < least {
		return ""
	}
	return perSecond(float64(r.sum.Count) / r.seconds)
}

// name of the row: process, point and key.
func (r row) name() string {
	text := fmt.Sprintf("%d %s", r.at.probe.GetPid(), r.at.label)
	spec := r.at.read.Spec
	switch {
	case r.key.Has:
		text += fmt.Sprintf(" %s=%s", spec.GetKeyCapture(), r.shown)
	case r.more > 0:
		text += fmt.Sprintf(" (%d more %s)", r.more, spec.GetKeyCapture())
	case spec.GetKeyCapture() != "" && r.sum.Count > 0:
		text += " (other " + spec.GetKeyCapture() + ")"
	}
	if r.sum.Unreadable > 0 {
		text += fmt.Sprintf(" (%d unreadable)", r.sum.Unreadable)
	}
	if r.part {
		text += fmt.Sprintf(" (partial: in place for %.3g s)", r.seconds)
	}
	return text
}

func (r row) keySigned() bool {
	return attunev1.SignedCapture(r.at.read.Spec, r.at.read.Spec.GetKeyCapture())
}

// keyDocument is the key in a document: a text, also of a number, which may be an address.
func (r row) keyDocument() any {
	if r.key.Kind == hits.KeyNumber {
		return r.key.Show(r.keySigned())
	}
	return r.key.Plain(false)
}

// value shows a sum or bound in the unit of the point.
func (r row) value(bits uint64) string {
	switch {
	case r.at.read.Value == "time" && r.at.read.Spec.GetPlace() == attunev1.Place_PLACE_BOTH:
		return time.Duration(bits).String()
	case r.at.signed():
		return strconv.FormatInt(int64(bits), 10)
	}
	return strconv.FormatUint(bits, 10)
}

func (r row) number(v float64) string {
	if r.at.read.Value == "time" && r.at.read.Spec.GetPlace() == attunev1.Place_PLACE_BOTH {
		return time.Duration(v).String()
	}
	return strconv.FormatFloat(v, 'f', 1, 64)
}

func (r row) json(from, to time.Time) map[string]any {
	document := map[string]any{
		"kind": "interval", "from": from, "to": to, "pid": r.at.probe.GetPid(), "point": r.at.probe.GetText(), "hits": r.sum.Count,
		"seconds": r.seconds, "partial": r.part,
	}
	if r.key.Has {
		document["key"] = r.keyDocument()
	}
	if r.sum.Unreadable > 0 {
		document["unreadable"] = r.sum.Unreadable
	}
	if r.at.read.Value == "" || r.sum.Count == 0 {
		return document
	}
	shown := func(v uint64) any {
		if r.at.signed() {
			return int64(v)
		}
		return v
	}
	document["value"], document["sum"], document["mean"], document["histogram"] = r.at.read.Value, shown(r.sum.Total), r.sum.Mean(), r.sum.Histogram
	if r.sum.Bounded {
		document["min"], document["max"] = shown(r.sum.Least), shown(r.sum.Greatest)
	}
	return document
}
