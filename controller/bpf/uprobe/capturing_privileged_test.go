// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package uprobe

import (
	"debug/elf"
	"slices"
	"testing"

	"github.com/attune-hpc/attune/controller/capture"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/objfile/usdt"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

func parameter(name string, number uint32, typ attunev1.CaptureType, steps ...int32) *attunev1.Capture {
	return &attunev1.Capture{Name: name, Source: &attunev1.Capture_Parameter{Parameter: number}, Type: typ, Dereference: steps}
}

func returned(name string, typ attunev1.CaptureType) *attunev1.Capture {
	return &attunev1.Capture{Name: name, Source: &attunev1.Capture_Returned{Returned: true}, Type: typ}
}

func about(name string, context attunev1.CaptureContext) *attunev1.Capture {
	return &attunev1.Capture{Name: name, Source: &attunev1.Capture_Context{Context: context}}
}

func is(capture string, comparison attunev1.Comparison, operand int64) *attunev1.Predicate {
	return &attunev1.Predicate{Capture: capture, Comparison: comparison, Operand: &attunev1.Value{Kind: &attunev1.Value_Integer{Integer: operand}}}
}

func mustProgram(t testing.TB, point *attunev1.MeasurePoint) capture.Program {
	t.Helper()
	program, err := capture.Compile(point)
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// decoded is one capture.
type decoded struct {
	kind uint32
	word uint64
	text string
}

// decode is an independent reading of what the protocol says of the words.
func (h hit) decode() (captures []decoded) {
	words := h.Words
	for kinds := h.Kinds; kinds != 0; kinds >>= 4 {
		c := decoded{kind: kinds & 15, word: words[0]}
		words = words[1:]
		if c.kind == kindString {
			for left := int(uint32(c.word)); left > 0; left -= 8 {
				for i := range min(left, 8) {
					c.text += string(rune(byte(words[0] >> (8 * i))))
				}
				words = words[1:]
			}
		}
		captures = append(captures, c)
	}
	return captures
}

// mustCapture attaches a point to a function of testdata/captures.c, lets it be
// called and returns the records.
func mustCapture(t *testing.T, opts Options, symbol string, calls int, point *attunev1.MeasurePoint) ([]hit, *targetProcess) {
	t.Helper()
	u := mustUprobes(t, opts)
	binary := mustCompile(t, "captures.c", "-no-pie")
	target := mustStartTarget(t, binary)
	program := mustProgram(t, point)
	mustAttach(t, u, Spec{
		Path: binary, Symbols: mustSymbols(t, binary, symbol), Point: 7, Place: point.GetPlace(),
		Delivery: attunev1.Delivery_DELIVERY_EVENT, Program: program,
	})
	var globals []uint64
	for _, global := range program.Globals() {
		globals = append(globals, mustAddress(t, binary, global.Symbol))
	}
	if err := u.Watch(Watch{PID: target.PID, Point: 7, Globals: globals}); err != nil {
		t.Fatal(err)
	}
	hits := collect(t, u, func(func(int)) { target.mustCall(t, "%s %d", symbol, calls) })
	if u.Lost() != 0 {
		t.Errorf("%d lost", u.Lost())
	}
	return hits, target
}

// mustAddress finds a variable of a program without position-independent code.
func mustAddress(t testing.TB, path, name string) uint64 {
	t.Helper()
	file, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	symbols, err := file.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(symbols, func(s elf.Symbol) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("no symbol %s", name)
	}
	return symbols[i].Value
}

// mustFindStatic finds the places of a static probe with its arguments.
func mustFindStatic(t *testing.T, path, name string) []Symbol {
	t.Helper()
	file, err := objfile.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	probes, err := usdt.Find(file, "attune", name)
	if err != nil {
		t.Fatal(err)
	}
	var symbols []Symbol
	for _, p := range probes {
		symbols = append(symbols, Symbol{
			Name: p.Name, Offset: p.FileOffset, Counter: p.SemaphoreOffset,
			Static: true, Arguments: p.Arguments, ArgumentError: p.ArgumentError,
		})
	}
	return symbols
}
