// SPDX-License-Identifier: Apache-2.0

package capture_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attune-hpc/attune/controller/capture"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

func parameter(name string, n uint32, t attunev1.CaptureType, dereference ...int32) *attunev1.Capture {
	return &attunev1.Capture{Name: name, Source: &attunev1.Capture_Parameter{Parameter: n}, Type: t, Dereference: dereference}
}

func real64(v float64) *attunev1.Value {
	return &attunev1.Value{Kind: &attunev1.Value_Real{Real: v}}
}

func integer(v int64) *attunev1.Value {
	return &attunev1.Value{Kind: &attunev1.Value_Integer{Integer: v}}
}

func TestCompile(t *testing.T) {
	const (
		i32 = attunev1.CaptureType_CAPTURE_TYPE_I32
		f64 = attunev1.CaptureType_CAPTURE_TYPE_F64
		str = attunev1.CaptureType_CAPTURE_TYPE_STRING
	)
	for _, tt := range []struct {
		name  string
		point *attunev1.MeasurePoint
		want  capture.Program
	}{
		{
			"nothing", &attunev1.MeasurePoint{Parameter: 3},
			capture.Program{Value: capture.None, Key: capture.None},
		},
		{
			"classes of parameters",
			&attunev1.MeasurePoint{Captures: []*attunev1.Capture{
				parameter("n", 5, i32), parameter("x", 7, f64), parameter("behind", 0, f64, 16),
				parameter("plain", 1, attunev1.CaptureType_CAPTURE_TYPE_UNSPECIFIED),
			}},
			capture.Program{Value: capture.None, Key: capture.None, Captures: []capture.Capture{
				{Name: "n", Source: capture.SourceParameter, Type: capture.TypeI32, Index: 5},
				{Name: "x", Source: capture.SourceFloatParameter, Type: capture.TypeF64, Index: 7},
				{Name: "behind", Source: capture.SourceParameter, Type: capture.TypeF64, Dereference: []int32{16}},
				{Name: "plain", Source: capture.SourceParameter, Type: capture.TypeU64, Index: 1},
			}},
		},
		{
			"strings and variables are read at offset 0",
			&attunev1.MeasurePoint{Captures: []*attunev1.Capture{
				parameter("path", 0, str),
				{Name: "global", Type: i32, Source: &attunev1.Capture_Global{Global: &attunev1.GlobalVariable{Object: "lib*", Symbol: "count"}}},
			}},
			capture.Program{Value: capture.None, Key: capture.None, Captures: []capture.Capture{
				{Name: "path", Source: capture.SourceParameter, Type: capture.TypeString, Limit: 64, Dereference: []int32{0}},
				{Name: "global", Source: capture.SourceGlobal, Type: capture.TypeI32, Global: capture.Global{Object: "lib*", Symbol: "count"}, Dereference: []int32{0}},
			}},
		},
		{
			"returned, key, value and predicates",
			&attunev1.MeasurePoint{
				Place: attunev1.Place_PLACE_EXIT,
				Captures: []*attunev1.Capture{
					{Name: "result", Type: i32, Source: &attunev1.Capture_Returned{Returned: true}},
					{Name: "ratio", Type: f64, Source: &attunev1.Capture_Returned{Returned: true}},
					{Name: "thread", Source: &attunev1.Capture_Context{Context: attunev1.CaptureContext_CAPTURE_CONTEXT_THREAD}},
				},
				ValueCapture: "result", KeyCapture: "thread",
				Predicates: []*attunev1.Predicate{
					{Capture: "result", Comparison: attunev1.Comparison_COMPARISON_LESS, Operand: integer(-1)},
					{Capture: "ratio", Comparison: attunev1.Comparison_COMPARISON_GREATER, Operand: integer(-2)},
					{Capture: "thread", Mask: 1, Comparison: attunev1.Comparison_COMPARISON_EQUAL, Operand: integer(1)},
				},
			},
			capture.Program{Value: 0, Key: 2, MaxKeys: 256, Captures: []capture.Capture{
				{Name: "result", Source: capture.SourceReturned, Type: capture.TypeI32},
				{Name: "ratio", Source: capture.SourceFloatReturned, Type: capture.TypeF64},
				{Name: "thread", Source: capture.SourceThread, Type: capture.TypeU64},
			}, Predicates: []capture.Predicate{
				{Capture: 0, Operator: 3, Mask: math.MaxUint64, Operand: math.MaxUint64},
				{Capture: 1, Operator: 5, Mask: math.MaxUint64, Operand: math.Float64bits(-2)},
				{Capture: 2, Operator: 1, Mask: 1, Operand: 1},
			}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := capture.Compile(tt.point)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCompileRefuses(t *testing.T) {
	const sized = attunev1.CaptureType_CAPTURE_TYPE_SIZED_STRING
	stack := &attunev1.Capture{Name: "stack", Source: &attunev1.Capture_Context{Context: attunev1.CaptureContext_CAPTURE_CONTEXT_STACK}}
	const (
		i8  = attunev1.CaptureType_CAPTURE_TYPE_I8
		u32 = attunev1.CaptureType_CAPTURE_TYPE_U32
		f32 = attunev1.CaptureType_CAPTURE_TYPE_F32
		str = attunev1.CaptureType_CAPTURE_TYPE_STRING
	)
	with := func(captures ...*attunev1.Capture) *attunev1.MeasurePoint {
		return &attunev1.MeasurePoint{Captures: captures}
	}
	where := func(t attunev1.CaptureType, p *attunev1.Predicate) *attunev1.MeasurePoint {
		p.Capture = "n"
		return &attunev1.MeasurePoint{Captures: []*attunev1.Capture{parameter("n", 0, t)}, Predicates: []*attunev1.Predicate{p}}
	}
	nine := with()
	for i := range 9 {
		nine.Captures = append(nine.Captures, parameter(strings.Repeat("n", i+1), 0, u32))
	}
	long := parameter("path", 0, str)
	long.StringLimit = 257
	limited := parameter("n", 0, u32)
	limited.StringLimit = 8
	half := parameter("a", 0, str)
	half.StringLimit = 256
	keyed := with(parameter("n", 0, u32))
	keyed.KeyCapture, keyed.Delivery = "n", attunev1.Delivery_DELIVERY_EVENT
	many := with(parameter("n", 0, u32))
	many.KeyCapture, many.MaxKeys = "n", 1025
	for _, tt := range []struct {
		name  string
		point *attunev1.MeasurePoint
		want  string
	}{
		{"no name", with(parameter("", 0, u32)), "no name"},
		{"twice", with(parameter("n", 0, u32), parameter("n", 1, u32)), "another capture"},
		{"no source", with(&attunev1.Capture{Name: "n"}), "no source"},
		{"unknown type", with(parameter("n", 0, 99)), "no type"},
		{"on the stack", with(parameter("n", 6, u32)), "passed on the stack"},
		{"float on the stack", with(parameter("n", 8, f32)), "passed on the stack"},
		{"too many", nine, "9 captures"},
		{"long string", with(long), "more than 256"},
		{"long strings", with(half, func() *attunev1.Capture {
			c := parameter("b", 1, str)
			c.StringLimit = 256
			return c
		}(), parameter("c", 2, str)), "together"},
		{"limit of a number", with(limited), "a limit is for strings"},
		{"too many steps", with(parameter("n", 0, u32, 0, 0, 0, 0, 0)), "5 steps"},
		{"returned at the entry", with(&attunev1.Capture{Name: "r", Source: &attunev1.Capture_Returned{Returned: true}}), "take its exit"},
		{"path", with(&attunev1.Capture{Name: "p", Source: &attunev1.Capture_Path{Path: "a.b"}}), "not looked up"},
		{"no symbol", with(&attunev1.Capture{Name: "g", Source: &attunev1.Capture_Global{}}), "needs a symbol"},
		{"context as a number", with(&attunev1.Capture{Name: "c", Type: f32, Source: &attunev1.Capture_Context{Context: 1}}), "are integers"},
		{"context as a string", with(&attunev1.Capture{Name: "c", Type: str, Source: &attunev1.Capture_Context{Context: 1}}), "are integers"},
		{"context behind", with(&attunev1.Capture{Name: "c", Dereference: []int32{0}, Source: &attunev1.Capture_Context{Context: 1}}), "no memory"},
		{"unknown context", with(&attunev1.Capture{Name: "c", Source: &attunev1.Capture_Context{Context: 77}}), "no context"},
		{"constant beyond its type", with(&attunev1.Capture{Name: "c", Type: i8, Source: &attunev1.Capture_Constant{Constant: integer(128)}}), "8 bits"},
		{"constant without a value", with(&attunev1.Capture{Name: "c", Source: &attunev1.Capture_Constant{}}), "no number"},
		{"unknown value", &attunev1.MeasurePoint{ValueCapture: "v"}, "not among"},
		{"string as a value", &attunev1.MeasurePoint{Captures: []*attunev1.Capture{parameter("s", 0, str)}, ValueCapture: "s"}, "no number"},
		{"stack as a value", &attunev1.MeasurePoint{Captures: []*attunev1.Capture{stack}, ValueCapture: "stack"}, "no number"},
		{"stack in a record", &attunev1.MeasurePoint{Captures: []*attunev1.Capture{stack}}, "key only"},
		{"length of a string on the stack", &attunev1.MeasurePoint{Captures: []*attunev1.Capture{parameter("s", 5, sized)}}, "passed on the stack"},
		{"keyed records", keyed, "for aggregates"},
		{"too many keys", many, "1024 keys"},
		{"keys without a key", &attunev1.MeasurePoint{MaxKeys: 7}, "but no key"},
		{"unknown comparison", where(u32, &attunev1.Predicate{Operand: integer(1)}), "no comparison"},
		{"compared string", where(str, &attunev1.Predicate{Comparison: 1, Operand: integer(1)}), "cannot be compared"},
		{"masked float", where(f32, &attunev1.Predicate{Comparison: 1, Mask: 1, Operand: integer(1)}), "for integers"},
		{"negative for unsigned", where(u32, &attunev1.Predicate{Comparison: 1, Operand: integer(-1)}), "32 bits"},
		{"fraction for an integer", where(u32, &attunev1.Predicate{Comparison: 1, Operand: real64(1.5)}), "no integer"},
		{"below its type", where(i8, &attunev1.Predicate{Comparison: 1, Operand: integer(-129)}), "8 bits"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := capture.Compile(tt.point)
			if !errors.Is(err, capture.ErrInvalid) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want ErrInvalid with %q", err, tt.want)
			}
		})
	}
}
