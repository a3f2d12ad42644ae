// SPDX-License-Identifier: Apache-2.0

package uprobe

import (
	"errors"
	"math"
	"testing"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

func TestSpecNormalised(t *testing.T) {
	good := Spec{Path: "/bin/true", Symbols: []Symbol{{Name: "main", Offset: 64}}, Point: 1}
	tests := []struct {
		name    string
		change  func(*Spec)
		wantErr bool
	}{
		{"good", func(*Spec) {}, false},
		{"sampled", func(s *Spec) { s.Delivery, s.SampleMask = attunev1.Delivery_DELIVERY_SAMPLED, 63 }, false},
		{"mask is not used", func(s *Spec) { s.SampleMask = 5 }, false},
		{"no point", func(s *Spec) { s.Point = 0 }, true},
		{"no symbols", func(s *Spec) { s.Symbols = nil }, true},
		{"no file", func(s *Spec) { s.Path = "" }, true},
		{"bad mask", func(s *Spec) { s.Delivery, s.SampleMask = attunev1.Delivery_DELIVERY_SAMPLED, 5 }, true},
		{"return at entry", func(s *Spec) { s.Symbols = []Symbol{{Name: "main", Offset: 64, Return: true}} }, true},
		{"return among others", func(s *Spec) {
			s.Place = attunev1.Place_PLACE_EXIT
			s.Symbols = []Symbol{{Name: "main", Offset: 64, Return: true}, {Name: "main", Offset: 32}}
		}, true},
		{"empty range", func(s *Spec) { s.MinValue, s.MaxValue = 9, 8 }, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			spec := good
			test.change(&spec)
			got, err := spec.normalised()
			if (err != nil) != test.wantErr || err != nil && !errors.Is(err, errSpec) {
				t.Fatalf("error %v, want one: %t", err, test.wantErr)
			}
			if err != nil {
				return
			}
			if got.Place != attunev1.Place_PLACE_ENTRY || got.MaxValue != math.MaxUint64 {
				t.Errorf("defaults not filled in: %+v", got)
			}
			if got.Delivery != attunev1.Delivery_DELIVERY_SAMPLED && got.SampleMask != 0 {
				t.Errorf("mask %d without sampling", got.SampleMask)
			}
		})
	}
}
