// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"math"
	"testing"

	"github.com/attune-hpc/attune/internal/hits"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// sumOf sums values up.
func sumOf(values ...uint64) *hits.Sum {
	s := &hits.Sum{}
	for _, v := range values {
		s.Add(v)
	}
	return s
}

// measured returns a report of points that people asked for.
func measured() *Report {
	r := New()
	r.Mode, r.Command, r.WallSeconds, r.Finished, r.Exit = "observe", []string{"solver"}, 2, true, Exit{Code: ptr(0)}
	keyed := Point{Tunlet: OwnerName, ID: "libc.so.6:write sum n=arg2 by fd=arg0", Target: "libc.so.6:write", State: "placed", Mechanism: "got", Processes: 2, CostNanos: 36}
	sums := map[hits.Key]*hits.Sum{{}: sumOf(9, 9)}
	sums[hits.Key{}].Unreadable = 3
	for fd := range uint64(12) {
		sums[hits.Key{Value: fd, Has: true}] = sumOf(fd, 512, 4096)
		keyed.Hits += 3
	}
	sums[hits.Key{Value: 4, Has: true}].Add(7)
	keyed.Hits += 3
	keyed.Measure(&attunev1.MeasurePoint{ValueCapture: "n", KeyCapture: "fd"}, "n", sums)
	timed := Point{Tunlet: OwnerName, ID: "solver:step%time", State: "placed", Mechanism: "patch", Processes: 1, Hits: 3, CostNanos: 1172, Reason: "first\nsecond"}
	timed.Measure(&attunev1.MeasurePoint{Place: attunev1.Place_PLACE_BOTH}, "time", map[hits.Key]*hits.Sum{{}: sumOf(100, 2e6, 3e6)})
	timed.Steps = []Step{{Seconds: 1.5, Process: 7, Text: "degraded to counts: too dear"}}
	single := Point{Tunlet: OwnerName, ID: "libc.so.6:open take path=arg0:str, x=arg1:f64", State: "placed", Mechanism: "uprobe", Processes: 1, Hits: 7, CostNanos: 520, CostMeasured: true}
	single.Captures = []CaptureTally{
		{Name: "path", Hits: 7, Unreadable: 1, Most: []ValueHits{
			{CapturedValue(attunev1.Captured{Kind: attunev1.CapturedString, Content: "/etc/\x1bhosts", Cut: true}), 4}, {Value{"b"}, 1}}, Others: 1},
		{Name: "x", Hits: 7, Value: NewRealDistribution("x", 7, math.Inf(1), -0.5, math.Inf(1)), Most: []ValueHits{{Value{-0.5}, 1}, {realValue(math.Inf(1)), 1}}},
	}
	counted := Point{Tunlet: OwnerName, ID: "libc.so.6:malloc", State: "placed", Mechanism: "hook", Processes: 1, Hits: 12, CostNanos: 3}
	counted.Measure(&attunev1.MeasurePoint{}, "", map[hits.Key]*hits.Sum{{}: sumOf(1, 2)})
	refused := Point{Tunlet: OwnerName, ID: "solver:nothing", State: "refused", Processes: 1, Reason: "no such symbol: nothing"}
	r.Points = []Point{keyed, timed, single, counted, refused}
	return r
}

// The JSON document holds all, and says it as the schema does.
func TestMeasuredIsWhole(t *testing.T) {
	r := measured()
	p := r.Points[0]
	if len(p.Keys) != 12 || p.Keys[0].Key.String() != "4" || p.Keys[0].Hits != 4 || p.Rest.Hits != 2 || p.Unreadable != 3 || p.Value.Count != 39 {
		t.Errorf("%+v", p)
	}
	if r.Points[3].Value != nil {
		t.Error("values of a point that only counts")
	}
	var out bytes.Buffer
	if err := r.EncodeJSON(&out); err != nil {
		t.Fatal(err)
	}
	if err := validate(t, out.Bytes()); err != nil {
		t.Error(err)
	}
}

// TestHitsBeforeItWasRefused: what was counted before a point was refused is told.
func TestHitsBeforeItWasRefused(t *testing.T) {
	for hits, want := range map[uint64]string{0: "x: no room", 3: "x: 3 hits: no room"} {
		if got := (&Point{ID: "x", State: "refused", Reason: "no room", Hits: hits}).text(); got != want {
			t.Errorf("%d hits: %q, want %q", hits, got, want)
		}
	}
}
