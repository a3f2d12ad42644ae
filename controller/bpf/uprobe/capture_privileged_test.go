// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package uprobe

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/controller/bpf"
	"github.com/attune-hpc/attune/internal/hits"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	typeI8  = attunev1.CaptureType_CAPTURE_TYPE_I8
	typeI32 = attunev1.CaptureType_CAPTURE_TYPE_I32
	typeI64 = attunev1.CaptureType_CAPTURE_TYPE_I64
	typeU8  = attunev1.CaptureType_CAPTURE_TYPE_U8
	typeU64 = attunev1.CaptureType_CAPTURE_TYPE_U64
	typePtr = attunev1.CaptureType_CAPTURE_TYPE_POINTER
	typeF32 = attunev1.CaptureType_CAPTURE_TYPE_F32
	typeF64 = attunev1.CaptureType_CAPTURE_TYPE_F64
	typeStr = attunev1.CaptureType_CAPTURE_TYPE_STRING

	// Kinds of captured values.
	kindUnsigned, kindSigned, kindFloat, kindPointer, kindUnreadable = 1, 2, 3, 4, 6
)

func TestCapturesAtEntry(t *testing.T) {
	for mechanism, opts := range mechanisms() {
		t.Run(mechanism, func(t *testing.T) {
			hits, target := mustCapture(t, opts, "takes", 3, &attunev1.MeasurePoint{Captures: []*attunev1.Capture{
				parameter("number", 0, typeI32),
				parameter("whole", 1, typeI32, 24, 0),
				parameter("small", 1, typeU8, 24, 4),
				parameter("real", 1, typeF32, 24, 8),
				parameter("exact", 1, typeF64, 24, 16),
				parameter("name", 1, typeStr, 24, 32, 0),
				parameter("bad", 5, typeU64, 0),
				parameter("nowhere", 5, typePtr),
			}})
			if len(hits) != 3 {
				t.Fatalf("%d records", len(hits))
			}
			for i, h := range hits {
				want := []decoded{
					{kindSigned, uint64(i), ""},
					{kindSigned, 1<<64 - 7, ""},
					{kindUnsigned, 200, ""},
					{kindFloat, math.Float64bits(-1.5), ""},
					{kindFloat, math.Float64bits(1e300), ""},
					{kindString, 9, "inner box"},
					{kindUnreadable, 0, ""},
					{kindPointer, 8, ""},
				}
				if got := h.decode(); !slices.Equal(got, want) {
					t.Errorf("record %d: %+v, want %+v", i, got, want)
				}
				if h.Point != 7 || h.Value != uint64(i) || h.Process != uint32(target.PID) {
					t.Errorf("record %d = %+v", i, h)
				}
			}
		})
	}
}

func TestCapturesOfContext(t *testing.T) {
	hits, target := mustCapture(t, Options{}, "takes", 2, &attunev1.MeasurePoint{Captures: []*attunev1.Capture{
		about("thread", attunev1.CaptureContext_CAPTURE_CONTEXT_THREAD),
		about("cpu", attunev1.CaptureContext_CAPTURE_CONTEXT_CPU),
		about("site", attunev1.CaptureContext_CAPTURE_CONTEXT_CALL_SITE),
		{Name: "counter", Type: typeI64, Source: &attunev1.Capture_Global{Global: &attunev1.GlobalVariable{Symbol: "counter"}}},
		{Name: "constant", Type: typeI8, Source: &attunev1.Capture_Constant{Constant: &attunev1.Value{Kind: &attunev1.Value_Integer{Integer: -2}}}},
		{Name: "text", Type: typeStr, StringLimit: 4, Source: &attunev1.Capture_Parameter{Parameter: 2}},
		{Name: "all of it", Type: typeStr, StringLimit: 9, Source: &attunev1.Capture_Parameter{Parameter: 2}},
		{Name: "real", Type: typeF32, Source: &attunev1.Capture_Constant{Constant: &attunev1.Value{Kind: &attunev1.Value_Real{Real: 0.5}}}},
	}})
	if len(hits) != 2 {
		t.Fatalf("%d records", len(hits))
	}
	got := hits[1].decode()
	main := mustAddress(t, fmt.Sprintf("/proc/%d/exe", target.PID), "main")
	if site := got[2].word; site < main || site > main+4096 {
		t.Errorf("call site %#x, main is at %#x", site, main)
	}
	if got[1].word > 4096 {
		t.Errorf("CPU %d", got[1].word)
	}
	got[1].word, got[2].word = 0, 0
	want := []decoded{
		{kindUnsigned, uint64(target.PID), ""}, {kindUnsigned, 0, ""}, {kindUnsigned, 0, ""},
		{kindSigned, 1<<64 - 3, ""}, {kindSigned, 1<<64 - 2, ""},
		{kindString, 4 | stringCut, "some"}, {kindString, 9, "some text"}, {kindFloat, math.Float64bits(0.5), ""},
	}
	if !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// At a return parameters are those that the call began with.
func TestCapturesAtReturn(t *testing.T) {
	for _, place := range []attunev1.Place{atExit, atBoth} {
		hits, target := mustCapture(t, Options{}, "takes", 4, &attunev1.MeasurePoint{
			Place: place,
			Captures: []*attunev1.Capture{
				parameter("number", 0, typeI64), parameter("large", 4, typeU64), returned("result", typeI32),
				about("site", attunev1.CaptureContext_CAPTURE_CONTEXT_CALL_SITE),
			},
			Predicates:   []*attunev1.Predicate{is("result", attunev1.Comparison_COMPARISON_LESS, 0)},
			ValueCapture: "result",
		})
		if len(hits) != 2 {
			t.Fatalf("%v: %d records", place, len(hits))
		}
		main := mustAddress(t, fmt.Sprintf("/proc/%d/exe", target.PID), "main")
		for i, h := range hits {
			got := h.decode()
			if site := got[3].word; site < main || site > main+4096 {
				t.Errorf("call site %#x, main is at %#x", site, main)
			}
			result := uint64(int64(2*i - 4))
			want := []decoded{{kindSigned, uint64(i), ""}, {kindUnsigned, 1 << 63, ""}, {kindSigned, result, ""}}
			if !slices.Equal(got[:3], want) || h.Value != result {
				t.Errorf("%v: record %+v captures %+v, want %+v", place, h, got, want)
			}
			if duration := h.Flags&recordDuration != 0; duration != (place == atBoth) || duration != (h.Extra > 0) {
				t.Errorf("%v: flags %#x, %d ns", place, h.Flags, h.Extra)
			}
		}
	}
}

// Arguments of static probes are taken from where the compiler left them.
func TestArgumentsOfStaticProbe(t *testing.T) {
	u := mustUprobes(t, Options{})
	binary := mustCompile(t, "captures.c")
	target := mustStartTarget(t, binary)
	symbols := mustFindStatic(t, binary, "fixed")
	spec := func(captures ...*attunev1.Capture) Spec {
		return Spec{
			Path: binary, Symbols: symbols, Point: 3, Parameter: 1, Delivery: attunev1.Delivery_DELIVERY_EVENT,
			Program: mustProgram(t, &attunev1.MeasurePoint{Captures: captures}),
		}
	}
	for i, name := range map[uint32]string{4: "floating point", 5: "there is no argument 5"} {
		var refused *RefusedError
		if _, err := u.Attach(spec(parameter("x", i, typeF64))); !errors.As(err, &refused) || !strings.Contains(err.Error(), name) {
			t.Errorf("argument %d: %v", i, err)
		}
	}
	mustAttach(t, u, spec(
		parameter("n", 0, typeI64), parameter("whole", 1, typeI32), parameter("constant", 2, typeI8),
		parameter("exact", 3, typeF64),
	))
	mustWatch(t, u, target.PID, 3)
	hits := collect(t, u, func(func(int)) { target.mustCall(t, "fixed 3") })
	if len(hits) != 3 {
		t.Fatalf("%d records", len(hits))
	}
	for i, h := range hits {
		want := []decoded{
			{kindSigned, uint64(i), ""}, {kindSigned, uint64(-int64(i)), ""}, {kindSigned, 1<<64 - 5, ""},
			{kindFloat, math.Float64bits(float64(i) + 0.25), ""},
		}
		if got := h.decode(); !slices.Equal(got, want) || h.Value != uint64(-int64(i)) {
			t.Errorf("record %+v captures %+v, want %+v", h, got, want)
		}
	}
}

func TestKeyedAggregates(t *testing.T) {
	u := mustUprobes(t, Options{})
	binary := mustCompile(t, "captures.c", "-no-pie")
	target := mustStartTarget(t, binary)
	const keys, calls = 10, 50
	mustAttach(t, u, Spec{
		Path: binary, Symbols: mustSymbols(t, binary, "takes"), Point: 1, Place: atExit,
		Program: mustProgram(t, &attunev1.MeasurePoint{
			Place:        atExit,
			Captures:     []*attunev1.Capture{parameter("number", 0, typeI64), returned("result", typeI32)},
			ValueCapture: "result", KeyCapture: "number", MaxKeys: keys,
		}),
	})
	mustWatch(t, u, target.PID, 1)
	const rounds = 3
	for range rounds {
		target.mustCall(t, "takes %d", calls)
	}
	other := mustAggregate(t, u, target.PID, 1)
	if other.Count != rounds*(calls-keys) || other.Min != 2*keys-4 || other.Max != 2*(calls-1)-4 || !other.Signed {
		t.Errorf("without key: %d hits, %d to %d", other.Count, int64(other.Min), int64(other.Max))
	}
	seen := 0
	u.ReadKeys(target.PID, 1, Closed, func(by hits.Key, a *Aggregate) {
		seen++
		key := by.Value
		value := uint64(2*int64(key) - 4)
		if key >= keys || a.Count != rounds || a.Sum != rounds*value || a.Min != value || a.Max != value || !a.Known {
			t.Errorf("key %d: %d hits, sum %d, %d to %d", key, a.Count, int64(a.Sum), int64(a.Min), int64(a.Max))
		}
	})
	if seen != keys {
		t.Errorf("%d keys, want %d", seen, keys)
	}
	if err := u.UnwatchProcess(target.PID, 1); err != nil {
		t.Fatal(err)
	}
	mustWatch(t, u, target.PID, 1)
	u.ReadKeys(target.PID, 1, Closed, func(key hits.Key, a *Aggregate) { t.Errorf("key %v of an earlier watch: %+v", key, a) })
}

func TestUnreadableIsCounted(t *testing.T) {
	u := mustUprobes(t, Options{})
	binary := mustCompile(t, "captures.c", "-no-pie")
	target := mustStartTarget(t, binary)
	mustAttach(t, u, Spec{
		Path: binary, Symbols: mustSymbols(t, binary, "takes"), Point: 1,
		Program: mustProgram(t, &attunev1.MeasurePoint{
			Captures: []*attunev1.Capture{parameter("bad", 5, typeU64, 0)}, ValueCapture: "bad",
		}),
	})
	mustWatch(t, u, target.PID, 1)
	target.mustCall(t, "takes 9")
	if got := mustAggregate(t, u, target.PID, 1); got.Count != 0 || got.Unreadable != 9 {
		t.Errorf("%d hits, %d unreadable", got.Count, got.Unreadable)
	}
}

func TestCapturesThatTheKernelRefuses(t *testing.T) {
	u := mustUprobes(t, Options{})
	binary := mustCompile(t, "captures.c")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	goReturn := mustGoSymbol(t, self, goFunction)
	goReturn.Return = true
	tests := []struct {
		name    string
		spec    Spec
		capture *attunev1.Capture
	}{
		{"double parameter", Spec{Path: binary, Symbols: mustSymbols(t, binary, "halves")}, parameter("x", 0, typeF64)},
		{"double result", Spec{Path: binary, Symbols: mustSymbols(t, binary, "halves"), Place: atExit}, returned("x", typeF64)},
		{"parameter at Go's return", Spec{Path: self, Symbols: []Symbol{goReturn}, Place: atExit}, parameter("x", 0, typeI64)},
	}
	for _, test := range tests {
		test.spec.Point = 1
		test.spec.Program = mustProgram(t, &attunev1.MeasurePoint{Place: test.spec.Place, Captures: []*attunev1.Capture{test.capture}})
		var unsupported *bpf.UnsupportedError
		if a, err := u.Attach(test.spec); !errors.As(err, &unsupported) {
			t.Errorf("%s: attached %v, error %v", test.name, a != nil, err)
		}
	}
}
