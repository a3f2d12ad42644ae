// SPDX-License-Identifier: Apache-2.0

package fold

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/internal/hits"
	"github.com/attune-hpc/attune/internal/pointtext"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// maxValues is how many different values of a capture are counted one by one.
const maxValues = 256

// tally is what the single hits of one point gave.
type tally struct {
	point pointtext.Point
	time  *captureTally // of timed hits; nil: none came
	value *captureTally // of the point's own value, where nothing is captured
	taken []*captureTally
}

func newTally(point pointtext.Point) *tally {
	t := &tally{point: point}
	for _, c := range point.Spec.GetCaptures() {
		t.taken = append(t.taken, newCaptureTally(c.GetName(), ""))
	}
	return t
}

// addAll takes packed hits; a nil tally takes none.
func (t *tally) addAll(packed []byte) {
	if t == nil {
		return
	}
	for r := range attunev1.AllRecords(packed) {
		t.add(r)
	}
}

// add takes a hit.
func (t *tally) add(r attunev1.Record) {
	if r.Timed() {
		if t.time == nil {
			t.time = newCaptureTally("time", "ns")
		}
		t.time.add(attunev1.Captured{Kind: attunev1.CapturedUnsigned, Bits: r.Extra})
	}
	for i, c := range r.Captured() {
		if i < len(t.taken) && c.Kind != attunev1.CapturedNone {
			t.taken[i].add(c)
		}
	}
	if len(t.taken) == 0 && t.point.Value != "" && !r.Timed() {
		if t.value == nil {
			t.value = newCaptureTally(t.point.Value, "")
		}
		t.value.add(attunev1.Captured{Kind: attunev1.CapturedUnsigned, Bits: r.Value})
	}
}

// report returns what came, in the order in which it is written; of a nil tally
// nothing.
func (t *tally) report() (out []report.CaptureTally) {
	if t == nil {
		return nil
	}
	for _, c := range slices.Concat([]*captureTally{t.time, t.value}, t.taken) {
		if c != nil && c.hits > 0 {
			out = append(out, c.report())
		}
	}
	return out
}

// captureTally counts the values of one capture.
type captureTally struct {
	name, unit string
	hits       uint64
	unreadable uint64
	numbers    hits.Sum // but floating point ones
	real       realSum
	values     map[attunev1.Captured]uint64 // the first maxValues different ones
	others     uint64
}

func newCaptureTally(name, unit string) *captureTally {
	return &captureTally{name: name, unit: unit, values: make(map[attunev1.Captured]uint64)}
}

func (c *captureTally) add(v attunev1.Captured) {
	c.hits++
	switch v.Kind {
	case attunev1.CapturedUnreadable:
		c.unreadable++
		return
	case attunev1.CapturedSigned:
		c.numbers.Signed = true
		c.numbers.Add(v.Bits)
	case attunev1.CapturedUnsigned:
		c.numbers.Add(v.Bits)
	case attunev1.CapturedReal:
		c.real.add(math.Float64frombits(v.Bits))
	}
	if _, known := c.values[v]; known || len(c.values) < maxValues {
		c.values[v]++
	} else {
		c.others++
	}
}

func (c *captureTally) report() report.CaptureTally {
	out := report.CaptureTally{Name: c.name, Hits: c.hits, Unreadable: c.unreadable, Most: []report.ValueHits{}, Others: c.others}
	if out.Value = report.NewDistribution(c.name, c.unit, &c.numbers); c.real.count > 0 {
		out.Value = report.NewRealDistribution(c.name, c.real.count, c.real.sum, c.real.least, c.real.greatest)
	}
	order := slices.SortedFunc(maps.Keys(c.values), func(a, b attunev1.Captured) int {
		return cmp.Or(cmp.Compare(c.values[b], c.values[a]), cmp.Compare(a.Bits, b.Bits), cmp.Compare(a.Content, b.Content))
	})
	for _, v := range order {
		out.Most = append(out.Most, report.ValueHits{Value: report.CapturedValue(v), Hits: c.values[v]})
	}
	return out
}

// realSum is what is known of floating point numbers; what is none is left out.
type realSum struct {
	count                uint64
	sum, least, greatest float64
}

func (r *realSum) add(v float64) {
	if math.IsNaN(v) {
		return
	}
	if r.count == 0 {
		r.least, r.greatest = v, v
	}
	r.count++
	r.sum += v
	r.least, r.greatest = min(r.least, v), max(r.greatest, v)
}
