// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// buildCaptured builds the program and its library.
func buildCaptured(t *testing.T) string {
	t.Helper()
	library := targets.Build(t, "testdata/captured.c", "-DLIBRARY", "-O1", "-fPIC", "-shared")
	return targets.Build(t, "testdata/captured.c", "-O1", "-fno-builtin", library, "-Wl,-rpath,"+filepath.Dir(library))
}

// placeCaptured starts the program with a row's point, by whichever mechanism
// comes; want says which may.
func placeCaptured(t *testing.T, program string, row captured, dynamic bool, want ...string) (*bench, *targets.Target) {
	t.Helper()
	kernel := slices.Contains(want, "uprobe")
	b := start(t, func(c *Config) { c.UseBPF = kernel })
	b.sampleEvery(t, 20*time.Millisecond)
	point := row.point
	point.Id = row.name
	symbol := cmp.Or(row.symbol, "c_send")
	point.Target = call(symbol, dynamic).GetTarget()
	if row.hook {
		point.Target = &attunev1.MeasurePoint_Hook{Hook: "malloc"}
	}
	if !kernel {
		b.addPoint(t, 1, point)
	} else { // for this one it is the cheapest, and where a uprobe stands no patch can
		other := call(symbol, false)
		other.Captures, other.ValueCapture = []*attunev1.Capture{parameter("tag", 0, i32, ofTag)}, "tag"
		b.addPoint(t, 2, other)
	}
	target := targets.Start(t, program, b.controller.Environment()...)
	if kernel {
		b.placedWhile(t, 2, func() { target.Ask(t, "0") })
		b.addPoint(t, 1, point)
	}
	s := b.placedWhile(t, 1, func() { target.Ask(t, "0") })
	if !slices.Contains(want, s.GetMechanism()) {
		t.Fatalf("point: %v, want it placed by %v", s, want)
	}
	return b, target
}

// sendIn has the program make its calls in one interval: a border takes from the
// extremes.
func (b *bench) sendIn(t *testing.T, target *targets.Target, hundreds int, end func()) {
	t.Helper()
	b.sampleEvery(t, time.Hour)
	target.Ask(t, fmt.Sprint(hundreds))
	end()
}

func testCaptured(t *testing.T, program string, row captured, dynamic bool, want ...string) {
	t.Helper()
	b, target := placeCaptured(t, program, row, dynamic, want...)
	b.sendIn(t, target, 1, func() { b.sampleEvery(t, 20*time.Millisecond) })
	if row.records != nil {
		if diff := gocmp.Diff(row.records, b.recordsOf(t, row)); diff != "" {
			t.Error(diff)
		}
	} else if diff := gocmp.Diff(row.aggregates, b.sumsOf(t, row)); diff != "" {
		t.Error(diff)
	}
	b.stop(t)
	target.EndWell(t)
}

// testIntervals closes one interval after another, the last one by taking the
// point out: sums, least and greatest of each are those of its own calls.
func testIntervals(t *testing.T, program string, row captured, dynamic bool, want ...string) {
	t.Helper()
	b, target := placeCaptured(t, program, row, dynamic, want...)
	first := row.aggregates
	for hundreds := 1; hundreds <= 3; hundreds++ {
		b.sendIn(t, target, hundreds, func() {
			if hundreds < 3 {
				b.sampleEvery(t, 20*time.Millisecond)
				return
			}
			b.removePoint(t, 1)
		})
		row.aggregates = raised(first, int64(100*(hundreds-1)))
		if diff := gocmp.Diff(row.aggregates, b.sumsOf(t, row)); diff != "" {
			t.Errorf("interval %d: %s", hundreds, diff)
		}
	}
	b.stop(t)
	target.EndWell(t)
}

// raised is what the aggregates are if every value is that much greater.
func raised(all []sums, by int64) (out []sums) {
	for _, s := range all {
		if s.Count > 0 {
			s.Sum, s.Min, s.Max = s.Sum+by*s.Count, s.Min+by, s.Max+by
		}
		out = append(out, s)
	}
	return out
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
func (b *bench) recordsOf(t *testing.T, row captured) (out []string) {
	t.Helper()
	event(t, b, "enough records", func(m *attunev1.PublishRequest) (bool, bool) {
		for r := range attunev1.AllRecords(m.GetRecords().GetRecords()) {
			var values []string
			for _, c := range r.Captured() {
				values = append(values, capturedText(c))
			}
			line := strings.Join(values, " ")
			if row.same && len(slices.Compact(values)) == 1 {
				line = "same"
			}
			if row.point.GetValueCapture() != "" {
				line = fmt.Sprintf("%d: %s", int64(r.Value), line)
			}
			out = append(out, line)
		}
		return true, len(out) >= len(row.records)
	})
	return out
}

// capturedText is a value as the rows have it: numbers as signed ones.
func capturedText(c attunev1.Captured) string {
	switch c.Kind {
	case attunev1.CapturedReal:
		return fmt.Sprint(c.Real()) // to the last digit
	case attunev1.CapturedUnreadable:
		return c.String()
	case attunev1.CapturedString:
		if c.Cut {
			return c.Content + "…"
		}
		return c.Content
	}
	return fmt.Sprint(c.Int())
}

// TestIntervals runs the rows about intervals in DMLib; for each thread, and by
// key in one table for all.
func TestIntervals(t *testing.T) {
	program := buildCaptured(t)
	for _, row := range intervalRows() {
		t.Run(row.name, func(t *testing.T) { testIntervals(t, program, row, true, "got") })
		t.Run(row.name+", patched", func(t *testing.T) { testIntervals(t, program, row, false, "patch") })
	}
}

// TestCaptured runs the table in DMLib.
func TestCaptured(t *testing.T) {
	program := buildCaptured(t)
	for _, row := range capturedRows() {
		row = row.inDMLib()
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
		if row = row.inDMLib(); !row.hook && row.point.GetPlace() == attunev1.Place_PLACE_UNSPECIFIED {
			t.Run(row.name+", patched", func(t *testing.T) { testCaptured(t, program, row, false, "patch") })
		}
	}
}
