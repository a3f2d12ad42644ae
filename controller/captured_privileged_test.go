// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package controller

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/attune-hpc/attune/controller/budget"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestCapturedByTheKernel runs the table of TestCaptured in the BPF programs,
// each third row in a short run.
func TestCapturedByTheKernel(t *testing.T) {
	program := buildCaptured(t)
	for i, row := range capturedRows() {
		if row.hook || row.real {
			continue // the kernel has neither
		}
		if testing.Short() && i%3 != 0 {
			continue
		}
		t.Run(row.name, func(t *testing.T) {
			testCaptured(t, program, row, false, "uprobe_multi", "uprobe")
		})
	}
}

// TestIntervalsByTheKernel runs the table of TestIntervals there.
func TestIntervalsByTheKernel(t *testing.T) {
	program := buildCaptured(t)
	for _, row := range intervalRows() {
		t.Run(row.name, func(t *testing.T) {
			testIntervals(t, program, row, false, "uprobe_multi", "uprobe")
		})
	}
}

// TestSampledCapturesAreReadByDMLib: of memory that is read at one call in some, the
// others must not pay with a trap. What the kernel reads at each call goes to DMLib
// when the budget leaves a sample of it.
func TestSampledCapturesAreReadByDMLib(t *testing.T) {
	program := buildCaptured(t)
	kernel := []string{"uprobe_multi", "uprobe"}
	tag := parameter("tag", 0, i32, ofTag)
	odd := []*attunev1.Predicate{{Capture: "tag", Mask: 1, Operand: &attunev1.Value{Kind: &attunev1.Value_Integer{Integer: 1}}}}
	for _, test := range []struct {
		name       string
		delivery   attunev1.Delivery
		every      uint32
		predicates []*attunev1.Predicate
		by         []string
		after      []string // the budget leaves a sample
	}{
		{"one in eight", attunev1.Delivery_DELIVERY_SAMPLED, 8, nil, []string{"patch"}, []string{"patch"}},
		{"each", eventful, 0, nil, kernel, []string{"patch"}},
		{"each that memory decides", eventful, 0, odd, kernel, []string{"patch"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := start(t, func(c *Config) { c.UseBPF = true })
			point := call("c_send", false)
			point.Captures, point.ValueCapture = []*attunev1.Capture{tag}, "tag"
			point.Delivery, point.SampleEvery, point.Predicates = test.delivery, test.every, test.predicates
			for _, p := range test.predicates {
				p.Comparison = attunev1.Comparison_COMPARISON_EQUAL
			}
			b.addPoint(t, 1, point)
			target := targets.Start(t, program, b.controller.Environment()...)
			safePoint := func() { target.Ask(t, "0") }
			s := b.placedWhile(t, 1, safePoint)
			if !slices.Contains(test.by, s.GetMechanism()) {
				t.Fatalf("point: %v", s)
			}
			target.Ask(t, "1")
			if test.every > 0 {
				row := captured{point: point, records: []string{"-3: -3", "2: 2"}} // the first and the sixth call
				if got := b.recordsOf(t, row); !slices.Equal(got, row.records) {
					t.Errorf("records: %q, want %q", got, row.records)
				}
			}
			if test.delivery == eventful {
				b.controller.placer.Degrade(s.GetProcess(), budget.Step{Point: 1, To: budget.Sampled, Reason: "too much"})
				b.controller.placer.Refresh(s.GetProcess()) // as when it has loaded a library just now
				s = b.placedWhile(t, 1, safePoint)
			}
			moved := s.GetLateNanos() > uint64(time.Millisecond) // it was out meanwhile
			if !slices.Contains(test.after, s.GetMechanism()) || test.by[0] != test.after[0] && !moved {
				t.Errorf("point: %v", s)
			}
			if test.delivery == eventful && !strings.Contains(s.GetDegradedReason(), "too much") {
				t.Errorf("point: %v", s)
			}
			b.stop(t)
			target.EndWell(t)
		})
	}
}
