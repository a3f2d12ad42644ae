// SPDX-License-Identifier: Apache-2.0

package uprobe

import (
	"strings"
	"testing"

	"github.com/attune-hpc/attune/controller/capture"
	"github.com/attune-hpc/attune/internal/objfile/usdt"
)

// A floating point number that a static probe passes in memory is captured as what it is,
// or not at all.
func TestFloatsOfStaticProbes(t *testing.T) {
	memory := func(size int, float bool) usdt.Operand {
		return usdt.Operand{Kind: usdt.Memory, Size: size, Float: float, Base: "rbp", Value: -8}
	}
	symbol := Symbol{Static: true, Arguments: []usdt.Operand{memory(8, true), memory(4, true), memory(8, false)}}
	captured := func(source capture.Source, kind capture.Type, index int, steps ...int32) Spec {
		c := capture.Capture{Name: "x", Source: source, Type: kind, Index: index, Dereference: steps}
		return normal(Spec{Program: capture.Program{Captures: []capture.Capture{c}}})
	}
	tests := []struct {
		name string
		spec Spec
		says string
	}{
		{"a double", captured(capture.SourceFloatParameter, capture.TypeF64, 0), ""},
		{"a float", captured(capture.SourceFloatParameter, capture.TypeF32, 1), ""},
		{"of an old header", captured(capture.SourceFloatParameter, capture.TypeF64, 2), ""},
		{"only counted", normal(Spec{}), ""},
		{"double as integer", captured(capture.SourceParameter, capture.TypeI64, 0), `capture it as f64`},
		{"double as float", captured(capture.SourceFloatParameter, capture.TypeF32, 0), `capture it as f64`},
		{"float as double", captured(capture.SourceFloatParameter, capture.TypeF64, 1), `capture it as f32`},
		{"double as pointer", captured(capture.SourceParameter, capture.TypeF64, 0, 8), `capture it as f64`},
		{"value", normal(Spec{Parameter: 1}), "capture it instead"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := planOf(tt.spec, symbol, false)
			if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v, want it to say %q", err, tt.says)
			}
		})
	}
}

// normal has the bounds of a spec whose values are not filtered.
func normal(s Spec) Spec {
	s.MaxValue = ^uint64(0)
	return s
}
