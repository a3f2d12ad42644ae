// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/attune-hpc/attune/controller/ring"
	"github.com/attune-hpc/attune/internal/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Offsets in struct message of testdata/captured.c.
const (
	ofTag, ofKind, ofWeight, ofName, ofNext, ofLabel = 0, 4, 8, 16, 24, 32
)

// captured is one row of what measure points must capture, whatever serves
// them: a point on c_send, or on a hook, and what the ten calls of
// testdata/captured.c give.
type captured struct {
	name  string
	point *attunev1.MeasurePoint
	// aggregates by key, or records; those of the calls in order.
	aggregates []sums
	records    []string
	// real needs floating point registers, which the kernel does not show; hook
	// is for DMLib's own hooks.
	real, hook bool
}

// sums is what an aggregate says; key -1 stands for none.
type sums struct {
	Key, Count, Sum, Min, Max, Unreadable int64
}

const (
	i32      = attunev1.CaptureType_CAPTURE_TYPE_I32
	u8       = attunev1.CaptureType_CAPTURE_TYPE_U8
	u64      = attunev1.CaptureType_CAPTURE_TYPE_U64
	i64      = attunev1.CaptureType_CAPTURE_TYPE_I64
	f32      = attunev1.CaptureType_CAPTURE_TYPE_F32
	f64      = attunev1.CaptureType_CAPTURE_TYPE_F64
	text     = attunev1.CaptureType_CAPTURE_TYPE_STRING
	eventful = attunev1.Delivery_DELIVERY_EVENT
)

func parameter(name string, n uint32, as attunev1.CaptureType, dereference ...int32) *attunev1.Capture {
	return &attunev1.Capture{
		Name: name, Source: &attunev1.Capture_Parameter{Parameter: n}, Type: as, Dereference: dereference,
	}
}

func limited(c *attunev1.Capture, limit uint32) *attunev1.Capture {
	c.StringLimit = limit
	return c
}

func level() *attunev1.Capture {
	return &attunev1.Capture{Name: "level", Type: i64, Source: &attunev1.Capture_Global{
		Global: &attunev1.GlobalVariable{Symbol: "c_level"},
	}}
}

func returned(as attunev1.CaptureType) *attunev1.Capture {
	return &attunev1.Capture{Name: "returned", Type: as, Source: &attunev1.Capture_Returned{Returned: true}}
}

func where(capture string, comparison attunev1.Comparison, operand *attunev1.Value) *attunev1.Predicate {
	return &attunev1.Predicate{Capture: capture, Comparison: comparison, Operand: operand}
}

func whole(v int64) *attunev1.Value {
	return &attunev1.Value{Kind: &attunev1.Value_Integer{Integer: v}}
}

func fraction(v float64) *attunev1.Value {
	return &attunev1.Value{Kind: &attunev1.Value_Real{Real: v}}
}

// capturedRows is what DMLib and the BPF programs must agree on.
func capturedRows() []captured {
	const less, equal, atLeast = attunev1.Comparison_COMPARISON_LESS, attunev1.Comparison_COMPARISON_EQUAL, attunev1.Comparison_COMPARISON_GREATER_EQUAL
	point := func(value, key string, captures ...*attunev1.Capture) *attunev1.MeasurePoint {
		return &attunev1.MeasurePoint{ValueCapture: value, KeyCapture: key, Captures: captures}
	}
	only := func(p *attunev1.MeasurePoint, predicates ...*attunev1.Predicate) *attunev1.MeasurePoint {
		p.Predicates = predicates
		return p
	}
	at := func(p *attunev1.MeasurePoint, place attunev1.Place) *attunev1.MeasurePoint {
		p.Place = place
		return p
	}
	keys := func(p *attunev1.MeasurePoint, n uint32) *attunev1.MeasurePoint {
		p.MaxKeys = n
		return p
	}
	records := func(p *attunev1.MeasurePoint) *attunev1.MeasurePoint {
		p.Delivery = eventful
		return p
	}
	return []captured{
		{name: "signed member behind a pointer", point: point("tag", "", parameter("tag", 0, i32, ofTag)),
			aggregates: []sums{{-1, 10, 15, -3, 6, 0}}},
		{name: "unsigned byte behind a pointer", point: point("kind", "", parameter("kind", 0, u8, ofKind)),
			aggregates: []sums{{-1, 10, 1521, 0, 255, 0}}}, // 250..255, 0..3
		{name: "parameter of 32 bits", point: point("count", "", parameter("count", 1, i32)),
			aggregates: []sums{{-1, 10, 9, 0, 2, 0}}},
		{name: "floating point member, truncated", point: point("weight", "", parameter("weight", 0, f64, ofWeight)),
			aggregates: []sums{{-1, 10, 20, 0, 4, 0}}},
		{name: "two steps, the first call's lead nowhere", point: point("tag", "", parameter("tag", 0, i32, ofNext, ofTag)),
			aggregates: []sums{{-1, 9, 9, -3, 5, 1}}},
		{name: "global variable", point: point("level", "", level()), aggregates: []sums{{-1, 10, 1045, 100, 109, 0}}},
		{name: "conditions", point: only(point("tag", "", parameter("tag", 0, i32, ofTag), parameter("weight", 0, f64, ofWeight), level()),
			where("tag", less, whole(4)), where("weight", atLeast, fraction(0.5)), where("level", atLeast, whole(102))),
			aggregates: []sums{{-1, 5, 5, -1, 3, 0}}},
		{name: "condition on bits", point: only(point("", "", level()), &attunev1.Predicate{Capture: "level", Mask: 3, Comparison: equal, Operand: whole(1)}),
			aggregates: []sums{{-1, 3, math.MinInt64, 0, 0, 0}}},
		{name: "condition on what cannot be read", point: only(point("tag", "", parameter("tag", 0, i32, ofNext, ofTag)), where("tag", less, whole(100))),
			aggregates: []sums{{-1, 9, 9, -3, 5, 0}}},
		{name: "by key", point: point("tag", "count", parameter("tag", 0, i32, ofTag), parameter("count", 1, i32)),
			aggregates: []sums{{-1, 0, 0, 0, 0, 0}, {0, 4, 6, -3, 6, 0}, {1, 3, 3, -2, 4, 0}, {2, 3, 6, -1, 5, 0}}},
		{name: "more keys than places", point: keys(point("tag", "level", parameter("tag", 0, i32, ofTag), level()), 3),
			aggregates: []sums{{-1, 7, 21, 0, 6, 0}, {100, 1, -3, -3, -3, 0}, {101, 1, -2, -2, -2, 0}, {102, 1, -1, -1, -1, 0}}},
		{name: "key that cannot be read", point: point("tag", "kind", parameter("tag", 0, i32, ofTag), parameter("kind", 0, u8, ofNext, ofKind)),
			aggregates: append([]sums{{-1, 0, 0, 0, 0, 1}}, eachOf(func(i int64) sums {
				return sums{Key: (249 + i) % 256, Count: 1, Sum: i - 3, Min: i - 3, Max: i - 3}
			})...)},
		{name: "records", point: records(point("tag", "", parameter("tag", 0, i32, ofTag), limited(parameter("label", 0, text, ofLabel), 8),
			limited(parameter("name", 0, text, ofName, 0), 8), parameter("before", 0, i32, ofNext, ofTag), parameter("weight", 0, f64, ofWeight))),
			records: each(func(i int) string {
				name, before := "even", fmt.Sprint(i-4)
				if i%2 == 1 {
					name = "odd, and…"
				}
				if i == 0 {
					before = "unreadable"
				}
				return fmt.Sprintf("%d: %d m%d %s %s %v", i-3, i-3, i, name, before, float64(i)*0.5)
			})},
		{name: "string of nobody", point: records(only(point("", "", level(), limited(parameter("text", 2, text), 3)), where("level", atLeast, whole(104)))),
			records: []string{"104 tex…", "105 unreadable", "106 tex…", "107 tex…", "108 tex…", "109 tex…"}},
		{name: "returned", point: at(point("returned", "", returned(i64)), attunev1.Place_PLACE_EXIT),
			aggregates: []sums{{-1, 10, -60, -15, 5, 0}}},
		{name: "returned, by itself", point: at(only(point("", "returned", returned(i64)), where("returned", less, whole(0))), attunev1.Place_PLACE_BOTH),
			aggregates: []sums{{-1, 0, 0, 0, 0, 0}, {-5, 3, math.MinInt64, 0, 0, 0}, {-15, 4, math.MinInt64, 0, 0, 0}}},
		{name: "floating point parameters", real: true, point: records(point("ratio", "", parameter("ratio", 0, f64), parameter("part", 1, f32))),
			records: each(func(i int) string {
				ratio := float64(i) - 4.5
				return fmt.Sprintf("%d: %v %v", int64(math.Float64bits(ratio)), ratio, float64(i)*0.25)
			})},
		{name: "condition on a floating point parameter", real: true, point: only(point("ratio", "", parameter("ratio", 0, f64)), where("ratio", less, fraction(-0.5))),
			aggregates: []sums{{-1, 4, -10, -4, -1, 0}}},
		{name: "hook", hook: true, point: only(point("bytes", "bytes", parameter("bytes", 0, u64)), where("bytes", equal, whole(777))),
			aggregates: []sums{{-1, 0, 0, 0, 0, 0}, {777, 10, 7770, 777, 777, 0}}},
	}
}

func each(f func(i int) string) (out []string) {
	for i := range 10 {
		out = append(out, f(i))
	}
	return out
}

// eachOf is for all calls but the first.
func eachOf(f func(i int64) sums) (out []sums) {
	for i := range int64(9) {
		out = append(out, f(i+1))
	}
	return out
}

// buildCaptured builds the program and its library.
func buildCaptured(t *testing.T) string {
	t.Helper()
	library := targets.Build(t, "testdata/captured.c", "-DLIBRARY", "-O1", "-fPIC", "-shared")
	return targets.Build(t, "testdata/captured.c", "-O1", "-fno-builtin", library, "-Wl,-rpath,"+filepath.Dir(library))
}

// testCaptured runs a row by whichever mechanism comes; want says which may.
func testCaptured(t *testing.T, program string, row captured, dynamic bool, want ...string) {
	t.Helper()
	kernel := slices.Contains(want, "uprobe")
	b := start(t, func(c *Config) { c.UseBPF = kernel })
	b.sampleEvery(t, 20*time.Millisecond)
	point := row.point
	point.Id = row.name
	point.Target = call("c_send", dynamic).GetTarget()
	if row.hook {
		point.Target = &attunev1.MeasurePoint_Hook{Hook: "malloc"}
	}
	b.addPoint(t, 1, point)
	if kernel { // for this one it is the cheapest, and where a uprobe stands no patch can
		other := call("c_send", false)
		other.Captures = []*attunev1.Capture{parameter("tag", 0, i32, ofTag)}
		b.addPoint(t, 2, other)
	}
	target := targets.Start(t, program, b.controller.Environment()...)
	s := b.placedWhile(t, 1, func() { target.Ask(t, "0") })
	if kernel && s.GetMechanism() == "patch" {
		s = b.placedWhile(t, 1, func() {}) // it came first, and gives way
	}
	if !slices.Contains(want, s.GetMechanism()) {
		t.Fatalf("point: %v, want it placed by %v", s, want)
	}
	b.sampleEvery(t, time.Hour) // all in one interval: its border takes from the extremes
	target.Ask(t, "1")
	b.sampleEvery(t, 20*time.Millisecond)
	if row.records != nil {
		if diff := gocmp.Diff(row.records, b.recordsOf(t, len(row.records), row.point.GetValueCapture() != "")); diff != "" {
			t.Error(diff)
		}
	} else if diff := gocmp.Diff(row.aggregates, b.sumsOf(t, row)); diff != "" {
		t.Error(diff)
	}
	b.stop(t)
	if err := target.End(t); err != nil {
		t.Errorf("target ended with %v", err)
	}
}

// sumsOf adds up aggregates until all hits of a row are in.
func (b *bench) sumsOf(t *testing.T, row captured) (out []sums) {
	t.Helper()
	var hits, want int64
	for _, s := range row.aggregates {
		want += s.Count + s.Unreadable
	}
	all := map[int64]*sums{}
	event(t, b, "enough counts", func(m *attunev1.PublishRequest) (bool, bool) {
		for _, a := range m.GetAggregates().GetAggregates() {
			if a.GetPoint() != 1 {
				continue
			}
			key := int64(-1)
			if a.Key != nil {
				key = int64(a.GetKey())
			}
			s := all[key]
			if s == nil {
				s = &sums{Key: key}
				all[key] = s
			}
			s.join(a)
			hits += int64(a.GetCount() + a.GetUnreadable())
		}
		return true, hits >= want
	})
	for i, s := range row.aggregates {
		if got := all[s.Key]; got != nil && s.Sum == math.MinInt64 { // the point's own value is an address or a time
			row.aggregates[i].Sum, got.Sum, got.Min, got.Max = 0, 0, 0, 0
		}
	}
	for _, s := range all {
		out = append(out, *s)
	}
	slices.SortFunc(out, func(a, b sums) int { return cmp.Compare(uint64(a.Key+1), uint64(b.Key+1)) })
	slices.SortFunc(row.aggregates, func(a, b sums) int { return cmp.Compare(uint64(a.Key+1), uint64(b.Key+1)) })
	return out
}

func (s *sums) join(a *attunev1.Aggregate) {
	if a.GetCount() > 0 && (s.Count == 0 || int64(a.GetMin()) < s.Min) {
		s.Min = int64(a.GetMin())
	}
	if a.GetCount() > 0 && (s.Count == 0 || int64(a.GetMax()) > s.Max) {
		s.Max = int64(a.GetMax())
	}
	s.Count += int64(a.GetCount())
	s.Sum += int64(a.GetSum())
	s.Unreadable += int64(a.GetUnreadable())
}

// recordsOf waits for records and writes each as its value and what it captured.
func (b *bench) recordsOf(t *testing.T, want int, withValue bool) (out []string) {
	t.Helper()
	event(t, b, "enough records", func(m *attunev1.PublishRequest) (bool, bool) {
		data := m.GetRecords().GetRecords()
		for at := 0; at < len(data); {
			follow := int(data[at+11])
			group := data[at : at+(1+follow)*ring.RecordSize]
			line := strings.Join(capturedIn(group[ring.RecordSize:]), " ")
			if withValue {
				line = fmt.Sprintf("%d: %s", int64(binary.LittleEndian.Uint64(group[16:])), line)
			}
			out = append(out, line)
			at += len(group)
		}
		return true, len(out) >= want
	})
	return out
}

// capturedIn decodes the continuations of one record, from the protocol's
// description.
func capturedIn(units []byte) (out []string) {
	var words []uint64
	word := binary.LittleEndian.Uint64
	for at := 0; at < len(units); at += ring.RecordSize {
		words = append(words, word(units[at:]), word(units[at+16:]), word(units[at+24:]))
	}
	kinds := binary.LittleEndian.Uint32(units[12:])
	for ; kinds != 0; kinds >>= 4 {
		value := words[0]
		words = words[1:]
		switch kinds & 15 {
		case 3:
			out = append(out, fmt.Sprint(math.Float64frombits(value)))
		case 5:
			length := int(uint32(value))
			var b []byte
			for range (length + 7) / 8 {
				b = binary.LittleEndian.AppendUint64(b, words[0])
				words = words[1:]
			}
			s := string(b[:length])
			if value>>32 == 1 {
				s += "…"
			}
			out = append(out, s)
		case 6:
			out = append(out, "unreadable")
		default:
			out = append(out, fmt.Sprint(int64(value)))
		}
	}
	return out
}

// TestCaptured runs the table in DMLib.
func TestCaptured(t *testing.T) {
	onX86(t)
	program := buildCaptured(t)
	for _, row := range capturedRows() {
		atEntry := row.point.GetPlace() == attunev1.Place_PLACE_UNSPECIFIED
		t.Run(row.name, func(t *testing.T) {
			switch {
			case row.hook:
				testCaptured(t, program, row, false, "hook")
			case atEntry:
				testCaptured(t, program, row, true, "got")
			default:
				testCaptured(t, program, row, false, "patch")
			}
		})
	}
	for _, row := range capturedRows() {
		if !row.hook && row.point.GetPlace() == attunev1.Place_PLACE_UNSPECIFIED {
			t.Run(row.name+", patched", func(t *testing.T) { testCaptured(t, program, row, false, "patch") })
		}
	}
}
