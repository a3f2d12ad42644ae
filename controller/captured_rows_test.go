// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"math"
	"slices"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Offsets in struct message of testdata/captured.c.
const (
	ofTag, ofKind, ofWeight, ofName, ofNext, ofLabel, ofEdge = 0, 4, 8, 16, 24, 32, 40
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
	// byDMLib is what DMLib gives instead of records: it decides whether a call is one
	// in some before it asks the conditions, a kernel's probe afterwards.
	byDMLib []string
	// symbol is the function; empty: c_send.
	symbol string
	// same: records of which all values are alike read "same".
	same bool
	// real needs floating point registers, which the kernel does not show; hook
	// is for DMLib's own hooks.
	real, hook bool
}

// inDMLib is the row with what DMLib gives.
func (c captured) inDMLib() captured {
	if c.byDMLib != nil {
		c.records = c.byDMLib
	}
	return c
}

// sums is what an aggregate says; key -1 stands for none.
type sums struct {
	Key, Count, Sum, Min, Max, Unreadable int64
}

const (
	i8       = attunev1.CaptureType_CAPTURE_TYPE_I8
	i16      = attunev1.CaptureType_CAPTURE_TYPE_I16
	i32      = attunev1.CaptureType_CAPTURE_TYPE_I32
	u8       = attunev1.CaptureType_CAPTURE_TYPE_U8
	u16      = attunev1.CaptureType_CAPTURE_TYPE_U16
	u32      = attunev1.CaptureType_CAPTURE_TYPE_U32
	u64      = attunev1.CaptureType_CAPTURE_TYPE_U64
	address  = attunev1.CaptureType_CAPTURE_TYPE_POINTER
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

func level() *attunev1.Capture { return global("level", "c_level", i64) }

func global(name, symbol string, as attunev1.CaptureType, dereference ...int32) *attunev1.Capture {
	return &attunev1.Capture{Name: name, Type: as, Dereference: dereference, Source: &attunev1.Capture_Global{
		Global: &attunev1.GlobalVariable{Symbol: symbol},
	}}
}

func constant(name string, as attunev1.CaptureType, v *attunev1.Value) *attunev1.Capture {
	return &attunev1.Capture{Name: name, Type: as, Source: &attunev1.Capture_Constant{Constant: v}}
}

func about(name string, as attunev1.CaptureType, what attunev1.CaptureContext) *attunev1.Capture {
	return &attunev1.Capture{Name: name, Type: as, Source: &attunev1.Capture_Context{Context: what}}
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
func capturedRows() []captured { return slices.Concat(valueRows(), comparisonRows(), contextRows()) }

// Points of the table.

func capturing(value, key string, captures ...*attunev1.Capture) *attunev1.MeasurePoint {
	return &attunev1.MeasurePoint{ValueCapture: value, KeyCapture: key, Captures: captures}
}

func only(p *attunev1.MeasurePoint, predicates ...*attunev1.Predicate) *attunev1.MeasurePoint {
	p.Predicates = predicates
	return p
}

func at(p *attunev1.MeasurePoint, place attunev1.Place) *attunev1.MeasurePoint {
	p.Place = place
	return p
}

func keys(p *attunev1.MeasurePoint, n uint32) *attunev1.MeasurePoint {
	p.MaxKeys = n
	return p
}

func recorded(p *attunev1.MeasurePoint) *attunev1.MeasurePoint {
	p.Delivery = eventful
	return p
}

// sampled takes one in so many.
func sampled(p *attunev1.MeasurePoint, every uint32) *attunev1.MeasurePoint {
	p.Delivery, p.SampleEvery = attunev1.Delivery_DELIVERY_SAMPLED, every
	return p
}

// within restricts the point's own value; most 0: no upper bound.
func within(p *attunev1.MeasurePoint, least, most uint64) *attunev1.MeasurePoint {
	p.MinValue, p.MaxValue = least, most
	return p
}

const (
	less    = attunev1.Comparison_COMPARISON_LESS
	equal   = attunev1.Comparison_COMPARISON_EQUAL
	other   = attunev1.Comparison_COMPARISON_NOT_EQUAL
	most    = attunev1.Comparison_COMPARISON_LESS_EQUAL
	atLeast = attunev1.Comparison_COMPARISON_GREATER_EQUAL
	more    = attunev1.Comparison_COMPARISON_GREATER
)

// valueRows are about what is read, and how it is summed up.
func valueRows() []captured {
	return []captured{
		{name: "signed member behind a pointer", point: capturing("tag", "", parameter("tag", 0, i32, ofTag)),
			aggregates: []sums{{-1, 10, 15, -3, 6, 0}}},
		{name: "unsigned byte behind a pointer", point: capturing("kind", "", parameter("kind", 0, u8, ofKind)),
			aggregates: []sums{{-1, 10, 1521, 0, 255, 0}}}, // 250..255, 0..3
		{name: "parameter of 32 bits", point: capturing("count", "", parameter("count", 1, i32)),
			aggregates: []sums{{-1, 10, 9, 0, 2, 0}}},
		{name: "floating point member, truncated", point: capturing("weight", "", parameter("weight", 0, f64, ofWeight)),
			aggregates: []sums{{-1, 10, 20, 0, 4, 0}}},
		{name: "two steps, the first call's lead nowhere", point: capturing("tag", "", parameter("tag", 0, i32, ofNext, ofTag)),
			aggregates: []sums{{-1, 9, 9, -3, 5, 1}}},
		{name: "global variable", point: capturing("level", "", level()), aggregates: []sums{{-1, 10, 1045, 100, 109, 0}}},
		{name: "by key", point: capturing("tag", "count", parameter("tag", 0, i32, ofTag), parameter("count", 1, i32)),
			aggregates: []sums{{-1, 0, 0, 0, 0, 0}, {0, 4, 6, -3, 6, 0}, {1, 3, 3, -2, 4, 0}, {2, 3, 6, -1, 5, 0}}},
		{name: "more keys than places", point: keys(capturing("tag", "level", parameter("tag", 0, i32, ofTag), level()), 3),
			aggregates: []sums{{-1, 7, 21, 0, 6, 0}, {100, 1, -3, -3, -3, 0}, {101, 1, -2, -2, -2, 0}, {102, 1, -1, -1, -1, 0}}},
		{name: "key that cannot be read", point: capturing("tag", "kind", parameter("tag", 0, i32, ofTag), parameter("kind", 0, u8, ofNext, ofKind)),
			aggregates: append([]sums{{-1, 0, 0, 0, 0, 1}}, eachOf(func(i int64) sums {
				return sums{Key: (249 + i) % 256, Count: 1, Sum: i - 3, Min: i - 3, Max: i - 3}
			})...)},
		{name: "records", point: recorded(capturing("tag", "", parameter("tag", 0, i32, ofTag), limited(parameter("label", 0, text, ofLabel), 8),
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
		{name: "string of nobody", point: recorded(only(capturing("", "", level(), limited(parameter("text", 2, text), 3)), where("level", atLeast, whole(104)))),
			records: []string{"104 tex…", "105 unreadable", "106 tex…", "107 tex…", "108 tex…", "109 tex…"}},
		{name: "returned", point: at(capturing("returned", "", returned(i64)), attunev1.Place_PLACE_EXIT),
			aggregates: []sums{{-1, 10, -60, -15, 5, 0}}},
		{name: "returned, by itself", point: at(only(capturing("", "returned", returned(i64)), where("returned", less, whole(0))), attunev1.Place_PLACE_BOTH),
			aggregates: []sums{{-1, 0, 0, 0, 0, 0}, {-5, 3, math.MinInt64, 0, 0, 0}, {-15, 4, math.MinInt64, 0, 0, 0}}},
		{name: "floating point parameters", real: true, point: recorded(capturing("ratio", "", parameter("ratio", 0, f64), parameter("part", 1, f32))),
			records: each(func(i int) string {
				ratio := float64(i) - 4.5
				return fmt.Sprintf("%d: %v %v", int64(math.Float64bits(ratio)), ratio, float64(i)*0.25)
			})},
		{name: "hook", hook: true, point: only(capturing("bytes", "bytes", parameter("bytes", 0, u64)), where("bytes", equal, whole(777))),
			aggregates: []sums{{-1, 0, 0, 0, 0, 0}, {777, 10, 7770, 777, 777, 0}}},
		{name: "no captures", point: &attunev1.MeasurePoint{Parameter: 1}, aggregates: []sums{{-1, 10, 9, 0, 2, 0}}},
		{name: "variables of each width", point: recorded(capturing("", "", global("i8", "c_wide", i8, 0), global("i16", "c_wide", i16, 2),
			global("i32", "c_wide", i32, 4), global("i64", "c_wide", i64, 8), global("u8", "c_wide", u8, 16), global("u16", "c_wide", u16, 18),
			global("u32", "c_wide", u32, 20), global("f32", "c_wide", f32, 32))),
			records: each(func(int) string { return "-8 -16 -32 -64 248 65520 4294967264 -3.5" })},
		{name: "wide variables", point: recorded(capturing("", "", global("u64", "c_wide", u64, 24), global("f64", "c_wide", f64, 40), global("pointer", "c_wide", address, 24))),
			records: each(func(int) string { return "-64 1e+300 -64" })},
		{name: "constants", point: capturing("half", "minus", constant("half", f64, fraction(2.5)), constant("minus", i64, whole(-7))),
			aggregates: []sums{{-1, 0, 0, 0, 0, 0}, {-7, 10, 20, 2, 2, 0}}},
		{name: "odd numbers, truncated", point: capturing("odd", "", global("odd", "c_odd", f64)),
			aggregates: []sums{{-1, 10, math.MaxInt64 - 1, math.MinInt64, math.MaxInt64, 0}}},
		{name: "odd numbers", point: recorded(capturing("", "", global("odd", "c_odd", f64), global("small", "c_small", f32))),
			records: []string{"NaN NaN", "-Inf -Inf", "+Inf +Inf", "-0 -0", "1.401298464324817e-45 1.401298464324817e-45", "1.5 1.5", "-1.5 -1.5",
				"1.7014118346046923e+38 1.7014118346046923e+38", "NaN NaN", "0 0"}},
		{name: "strings as long as the limit", point: recorded(capturing("", "", limited(parameter("name", 0, text, ofName, 0), 4), limited(parameter("label", 0, text, ofLabel), 2),
			limited(parameter("again", 0, text, ofLabel), 1))),
			records: each(func(i int) string { return fmt.Sprintf("%s m%d m…", []string{"even", "odd,…"}[i%2], i) })},
		{name: "strings where memory ends", point: recorded(capturing("", "", limited(parameter("whole", 0, text, ofEdge, 0), 8), limited(parameter("exact", 0, text, ofEdge, 0), 3),
			limited(parameter("cut", 0, text, ofEdge, 0), 1))),
			records: each(func(i int) string { return []string{"end end e…", "unreadable unreadable e…"}[i%2] })},
		{name: "records of a value that cannot be read", point: recorded(capturing("before", "", parameter("before", 0, i32, ofNext, ofTag))),
			records: each(func(i int) string {
				if i == 0 {
					return "0: unreadable"
				}
				return fmt.Sprintf("%d: %d", i-4, i-4)
			})},
		{name: "results of recursion", symbol: "c_nest", point: at(recorded(capturing("", "", returned(i64))), attunev1.Place_PLACE_EXIT),
			records: []string{"0", "1", "3", "6", "0", "1", "3", "6", "10", "15"}},
		{name: "results of recursion, timed", symbol: "c_nest", point: at(capturing("", "returned", returned(i64)), attunev1.Place_PLACE_BOTH),
			aggregates: []sums{{-1, 0, 0, 0, 0, 0}, {0, 2, math.MinInt64, 0, 0, 0}, {1, 2, math.MinInt64, 0, 0, 0}, {3, 2, math.MinInt64, 0, 0, 0},
				{6, 2, math.MinInt64, 0, 0, 0}, {10, 1, math.MinInt64, 0, 0, 0}, {15, 1, math.MinInt64, 0, 0, 0}}},
	}
}

// comparisonRows are about which hits count.
func comparisonRows() []captured {
	return []captured{
		{name: "conditions", point: only(capturing("tag", "", parameter("tag", 0, i32, ofTag), parameter("weight", 0, f64, ofWeight), level()),
			where("tag", less, whole(4)), where("weight", atLeast, fraction(0.5)), where("level", atLeast, whole(102))),
			aggregates: []sums{{-1, 5, 5, -1, 3, 0}}},
		{name: "condition on bits", point: only(capturing("", "", level()), &attunev1.Predicate{Capture: "level", Mask: 3, Comparison: equal, Operand: whole(1)}),
			aggregates: []sums{{-1, 3, math.MinInt64, 0, 0, 0}}},
		{name: "condition on what cannot be read", point: only(capturing("tag", "", parameter("tag", 0, i32, ofNext, ofTag)), where("tag", less, whole(100))),
			aggregates: []sums{{-1, 9, 9, -3, 5, 0}}},
		{name: "condition on a floating point parameter", real: true, point: only(capturing("ratio", "", parameter("ratio", 0, f64)), where("ratio", less, fraction(-0.5))),
			aggregates: []sums{{-1, 4, -10, -4, -1, 0}}},
		{name: "own value within bounds", point: within(&attunev1.MeasurePoint{Parameter: 1}, 1, 1), aggregates: []sums{{-1, 3, 3, 1, 1, 0}}},
		{name: "result within bounds", point: at(within(&attunev1.MeasurePoint{}, 0, 100), attunev1.Place_PLACE_EXIT), aggregates: []sums{{-1, 3, 15, 5, 5, 0}}},
		// The first parameter, an address, is greater than an hour of nanoseconds.
		{name: "duration of at most an hour", point: at(within(capturing("returned", "", returned(i64)), 0, 3600e9), attunev1.Place_PLACE_BOTH),
			aggregates: []sums{{-1, 10, -60, -15, 5, 0}}},
		{name: "condition on one in four", point: sampled(only(capturing("tag", "", parameter("tag", 0, i32, ofTag)), where("tag", atLeast, whole(-1))), 4),
			records: []string{"-1: -1", "3: 3"}, byDMLib: []string{"-1: -1", "2: 2"}},
		{name: "the same bits, signed", point: only(capturing("tag", "", parameter("tag", 0, i32, ofTag)), where("tag", less, whole(0))),
			aggregates: []sums{{-1, 3, -6, -3, -1, 0}}},
		{name: "the same bits, unsigned", point: only(capturing("tag", "", parameter("tag", 0, u32, ofTag)), where("tag", more, whole(math.MaxInt32))),
			aggregates: []sums{{-1, 3, 3<<32 - 6, 1<<32 - 3, 1<<32 - 1, 0}}},
		{name: "unsigned and masked", point: only(capturing("level", "", level(), parameter("kind", 0, u8, ofKind)),
			&attunev1.Predicate{Capture: "kind", Mask: 0x81, Comparison: other, Operand: whole(0x81)}, where("level", most, whole(108))),
			aggregates: []sums{{-1, 6, 100 + 102 + 104 + 106 + 107 + 108, 100, 108, 0}}},
		{name: "equal to zero, whatever its sign", point: only(capturing("level", "", level(), global("odd", "c_odd", f64)), where("odd", equal, whole(0))),
			aggregates: []sums{{-1, 2, 103 + 109, 103, 109, 0}}},
		{name: "what is no number is only unequal", point: only(capturing("level", "", level(), global("odd", "c_small", f32)), where("odd", other, fraction(1.5))),
			aggregates: []sums{{-1, 9, 1045 - 105, 100, 109, 0}}},
		{name: "less than zero, as floating point numbers", point: only(capturing("level", "", level(), global("odd", "c_odd", f64)), where("odd", less, whole(0))),
			aggregates: []sums{{-1, 2, 101 + 106, 101, 106, 0}}},
		{name: "greater than the smallest", point: only(capturing("level", "", level(), global("odd", "c_small", f32)), where("odd", atLeast, fraction(math.SmallestNonzeroFloat32))),
			aggregates: []sums{{-1, 4, 102 + 104 + 105 + 107, 102, 107, 0}}},
	}
}

// contextRows are about what is in no variable; the program passes it on as well.
func contextRows() []captured {
	const thread, cpu, site = attunev1.CaptureContext_CAPTURE_CONTEXT_THREAD, attunev1.CaptureContext_CAPTURE_CONTEXT_CPU, attunev1.CaptureContext_CAPTURE_CONTEXT_CALL_SITE
	same := each(func(int) string { return "same" })
	return []captured{
		{name: "thread", symbol: "c_where", same: true, records: same,
			point: recorded(capturing("", "", about("thread", u32, thread), parameter("passed", 0, u32)))},
		{name: "CPU", symbol: "c_where", same: true, records: same,
			point: recorded(capturing("", "", about("cpu", u32, cpu), parameter("passed", 2, u32)))},
		{name: "call site", symbol: "c_where", same: true, records: same,
			point: recorded(capturing("", "", about("site", address, site), parameter("passed", 1, address)))},
		{name: "call site at the return", symbol: "c_where", same: true, records: same,
			point: at(recorded(capturing("", "", about("site", address, site), returned(address))), attunev1.Place_PLACE_EXIT)},
		{name: "call site, timed", symbol: "c_where", same: true, records: same,
			point: at(recorded(capturing("", "", about("site", address, site), returned(address))), attunev1.Place_PLACE_BOTH)},
	}
}

// intervalRows are about sums whose values are 100 greater in each interval.
func intervalRows() []captured {
	return []captured{
		{name: "intervals", point: capturing("level", "", level()), aggregates: []sums{{-1, 10, 1045, 100, 109, 0}}},
		{name: "intervals by key", point: capturing("level", "count", level(), parameter("count", 1, i32)),
			aggregates: []sums{{-1, 0, 0, 0, 0, 0}, {0, 4, 418, 100, 109, 0}, {1, 3, 312, 101, 107, 0}, {2, 3, 315, 102, 108, 0}}},
		{name: "intervals, more keys than places", point: keys(capturing("level", "count", level(), parameter("count", 1, i32)), 2),
			aggregates: []sums{{-1, 3, 315, 102, 108, 0}, {0, 4, 418, 100, 109, 0}, {1, 3, 312, 101, 107, 0}}},
		{name: "intervals of signed values", point: capturing("minus", "", global("minus", "c_minus", i32)),
			aggregates: []sums{{-1, 10, -2955, -300, -291, 0}}},
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
