// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/attune-hpc/attune/internal/hits"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Point is one measure point, the same in all processes counted here.
type Point struct {
	Tunlet       string  `json:"tunlet" jsonschema:"Tunlet that asked for it."`
	ID           string  `json:"id" jsonschema:"The tunlet's name for it."`
	Target       string  `json:"target" jsonschema:"What is watched."`
	State        string  `json:"state" jsonschema:"placed, refused, removed or unanswered."`
	Mechanism    string  `json:"mechanism,omitempty" jsonschema:"Mechanism that served it."`
	Reason       string  `json:"reason,omitempty" jsonschema:"Why it was refused or not served by a cheaper mechanism."`
	Processes    int     `json:"processes" jsonschema:"Number of processes in this state."`
	Hits         uint64  `json:"hits" jsonschema:"Hits in aggregates and records, in the processes in this state."`
	CostNanos    float64 `json:"cost_nanos,omitempty" jsonschema:"Cost per hit, nanoseconds."`
	CostMeasured bool    `json:"cost_measured,omitempty" jsonschema:"The cost was measured on this machine; else it is that of another one."`
	LateSeconds  float64 `json:"late_seconds,omitempty" jsonschema:"For how long a process ran at most while the point was asked for and not in place, seconds: hits in that time are not seen, and their number is not known."`

	Unreadable uint64         `json:"unreadable,omitempty" jsonschema:"Hits that are in no sum, because the value or the key could not be read."`
	Value      *Distribution  `json:"value,omitempty" jsonschema:"Values of all hits in aggregates; absent if hits are only counted."`
	Key        string         `json:"key,omitempty" jsonschema:"Value by which hits are kept apart."`
	Keys       []KeyRow       `json:"keys,omitempty" jsonschema:"Hits by key, over all processes, those with the most hits first."`
	Rest       *KeyRow        `json:"rest,omitempty" jsonschema:"Hits with keys for which there was no place."`
	Captures   []CaptureTally `json:"captures,omitempty" jsonschema:"What was captured at single hits."`
	Steps      []Step         `json:"steps,omitempty" jsonschema:"Steps that the overhead budget took: the first 128 and the latest 128."`
}

// Step is one step of the overhead budget.
type Step struct {
	Seconds float64 `json:"seconds" jsonschema:"When, seconds since the session's start."`
	Process int     `json:"process" jsonschema:"Process id."`
	Text    string  `json:"text" jsonschema:"What is left of the point, and why."`
}

// KeyRow is the hits with one key.
type KeyRow struct {
	Key   Value         `json:"key" jsonschema:"The key; null of hits without one of their own."`
	Stack []string      `json:"stack,omitempty" jsonschema:"Of a stack its functions as OBJECT:FUNCTION, outermost first."`
	Hits  uint64        `json:"hits" jsonschema:"Hits with it."`
	Value *Distribution `json:"value,omitempty" jsonschema:"Their values; absent if hits are only counted."`
}

// Distribution is what is known of many numbers.
type Distribution struct {
	Name        string       `json:"name" jsonschema:"Name of the value."`
	Unit        string       `json:"unit,omitempty" jsonschema:"ns of times; absent: that of the program."`
	Count       uint64       `json:"count" jsonschema:"Number of values."`
	Sum         Value        `json:"sum" jsonschema:"Their sum, modulo 2^64."`
	Least       Value        `json:"least" jsonschema:"The least; null if it is not known."`
	Greatest    Value        `json:"greatest" jsonschema:"The greatest; null if it is not known."`
	Mean        *float64     `json:"mean,omitempty" jsonschema:"The arithmetic mean; absent where one of the values is infinite."`
	Percentiles []Percentile `json:"percentiles,omitempty" jsonschema:"Between what the 50th, 90th and 99th percentile lie."`
	Histogram   []Bucket     `json:"histogram,omitempty" jsonschema:"How many values there are by powers of two, empty buckets left out."`
}

// Percentile is bounds of a percentile: values are counted by powers of two.
// DMLib counts times in ticks of its clock: theirs are right to within a factor
// of 1.5.
type Percentile struct {
	Percent int   `json:"percent" jsonschema:"So many percent of all values do not exceed it."`
	AtLeast Value `json:"at_least" jsonschema:"It is at least this."`
	AtMost  Value `json:"at_most" jsonschema:"It is at most this."`
}

// Bucket counts values in a range.
type Bucket struct {
	AtLeast Value  `json:"at_least" jsonschema:"The least value that the bucket counts."`
	AtMost  Value  `json:"at_most" jsonschema:"The greatest value that it counts."`
	Count   uint64 `json:"count" jsonschema:"Number of values."`
}

// CaptureTally is what one capture gave at single hits.
type CaptureTally struct {
	Name       string        `json:"name" jsonschema:"Name of the capture, or time."`
	Hits       uint64        `json:"hits" jsonschema:"Hits of which it was read; those beyond are in the events that were lost."`
	Unreadable uint64        `json:"unreadable,omitempty" jsonschema:"Hits at which it could not be read."`
	Value      *Distribution `json:"value,omitempty" jsonschema:"Of numbers, how they are distributed."`
	Most       []ValueHits   `json:"most" jsonschema:"Values and their hits, those with the most hits first: of the first 256 different ones."`
	Others     uint64        `json:"others,omitempty" jsonschema:"Hits with values beyond those."`
}

// ValueHits is how often a value came.
type ValueHits struct {
	Value Value  `json:"value" jsonschema:"The value; a string that was cut ends in an ellipsis."`
	Hits  uint64 `json:"hits" jsonschema:"Hits with it."`
}

// percentiles are those that a distribution tells.
var percentiles = []int{50, 90, 99}

// Measure fills in what aggregates say; name is what the value is called, empty
// if hits are only counted. The sums are over all processes.
func (p *Point) Measure(spec *attunev1.MeasurePoint, name string, sums map[hits.Key]*hits.Sum) {
	unit := ""
	if spec.GetPlace() == attunev1.Place_PLACE_BOTH && spec.GetValueCapture() == "" {
		unit = "ns"
	}
	total := &hits.Sum{Signed: attunev1.SignedCapture(spec, spec.GetValueCapture())}
	signed := attunev1.SignedCapture(spec, spec.GetKeyCapture())
	for _, k := range slices.SortedFunc(maps.Keys(sums), func(a, b hits.Key) int {
		return cmp.Or(cmp.Compare(sums[b].Count, sums[a].Count), a.Compare(b))
	}) {
		s := sums[k]
		total.Merge(s)
		row := KeyRow{Hits: s.Count, Value: NewDistribution(name, unit, s)}
		switch {
		case k.Has:
			row.Key, row.Stack = Value{k.Plain(signed)}, k.Calls()
			p.Keys = append(p.Keys, row)
		case spec.GetKeyCapture() != "" && s.Count > 0:
			p.Rest = &row
		}
	}
	p.Key, p.Unreadable = spec.GetKeyCapture(), total.Unreadable
	p.Value = NewDistribution(name, unit, total)
}

// NewDistribution returns what is known of values with a name; nil without
// values or a name.
func NewDistribution(name, unit string, s *hits.Sum) *Distribution {
	if name == "" || s.Count == 0 {
		return nil
	}
	d := &Distribution{Name: name, Unit: unit, Count: s.Count, Sum: number(s.Total, s.Signed), Mean: new(s.Mean())}
	if s.Bounded {
		d.Least, d.Greatest = number(s.Least, s.Signed), number(s.Greatest, s.Signed)
	}
	for _, percent := range percentiles {
		if least, greatest, ok := s.Percentile(float64(percent)); ok {
			d.Percentiles = append(d.Percentiles, Percentile{percent, number(least, s.Signed), number(greatest, s.Signed)})
		}
	}
	for bucket, n := range s.Histogram {
		if n > 0 {
			least, greatest := s.Bucket(bucket)
			d.Histogram = append(d.Histogram, Bucket{number(least, s.Signed), number(greatest, s.Signed), n})
		}
	}
	return d
}

// NewRealDistribution returns what is known of floating point numbers.
func NewRealDistribution(name string, count uint64, sum, least, greatest float64) *Distribution {
	return &Distribution{
		Name: name, Count: count, Mean: Finite(sum / float64(count)),
		Sum: realValue(sum), Least: realValue(least), Greatest: realValue(greatest),
	}
}

// Finite returns nil for a number that JSON has no word for.
func Finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// number is 64 bits as a Value.
func number(bits uint64, signed bool) Value {
	if signed {
		return Value{int64(bits)}
	}
	return Value{bits}
}

// CapturedValue is a captured value as a Value; one that was cut or is no finite
// number is a text, and one that could not be read unknown.
func CapturedValue(c attunev1.Captured) Value {
	switch v := c.JSON().(type) {
	case string:
		if c.Cut {
			v += "…"
		}
		return Value{v}
	default:
		return Value{v}
	}
}
