// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"testing"

	"github.com/attune-hpc/attune/controller/capture"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// A condition that reads memory costs a trap's worth at each hit, but next to nothing
// where one call in a thousand is looked at.
func TestCaptureCost(t *testing.T) {
	read := capture.Capture{Source: capture.SourceParameter, Dereference: []int32{0}}
	number := capture.Capture{Source: capture.SourceParameter}
	condition := []capture.Predicate{{Capture: 0}}
	tests := []struct {
		name     string
		delivery attunev1.Delivery
		program  capture.Program
		want     float64
	}{
		{"nothing", attunev1.Delivery_DELIVERY_SAMPLED, capture.Program{}, 0},
		{"each", attunev1.Delivery_DELIVERY_EVENT, capture.Program{Captures: []capture.Capture{read, number}}, 2030},
		{"condition on each", attunev1.Delivery_DELIVERY_AGGREGATE, capture.Program{Captures: []capture.Capture{read}, Predicates: condition}, 2030},
		{"sums do without what they do not need", attunev1.Delivery_DELIVERY_AGGREGATE, capture.Program{Captures: []capture.Capture{number, read}, Predicates: condition}, 30},
		{"one in 1,024", attunev1.Delivery_DELIVERY_SAMPLED, capture.Program{Captures: []capture.Capture{read, number}}, 2030. / 1024},
		{"condition on one in 1,024", attunev1.Delivery_DELIVERY_SAMPLED, capture.Program{Captures: []capture.Capture{read, number}, Predicates: condition}, 2030. / 1024},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.program.Value, test.program.Key = -1, -1
			spec := &attunev1.MeasurePoint{Delivery: test.delivery, SampleEvery: 1000}
			if got := (captures{program: test.program}).cost(spec); got != test.want {
				t.Errorf("got %v ns, want %v", got, test.want)
			}
		})
	}
}
