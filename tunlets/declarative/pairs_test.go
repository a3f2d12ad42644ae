// SPDX-License-Identifier: Apache-2.0

package declarative_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/sdk"
	"github.com/attune-hpc/attune/tunlets/tunlettest"
)

// collecting takes the time from one static probe to another.
const collecting = `attune: tunlet/1
name: collecting
version: "1"
summary: for tests
wake:
  - {levels: {cpu_user: 5e8}}
points:
  - {id: collection, probe: "usdt:python3*:python:gc__start", until: "usdt:python3*:python:gc__done"}
  - {id: lists, probe: "libpython*:PyList_New sum arg0", optional: true}
symptom: rate.cpu_user > 5e8
confirm: point.collection.sum > 1e8
objective:
  name: cpu
  unit: "1"
  description: for tests
  value: rate.cpu_user
reason: ${100.0 * point.collection.sum / 1e9} % in ${point.collection.rate} collections/s of ${point.collection.mean / 1e6} ms, ${point.lists.rate} lists
change:
  - {setting: python.gc.threshold0, to: 5, description: d}
`

// collect lets rounds pass, in each of which a collection takes so long.
func collect(h *tunlettest.Harness, p *tunlettest.Process, rounds int, took time.Duration, change func(*tunlettest.Hit)) {
	for range rounds {
		var hits []tunlettest.Hit
		now := h.Elapsed().Nanoseconds()
		for thread := range int32(2) { // the second one's is never ended
			hits = append(hits, tunlettest.Hit{Point: fmt.Sprintf("collection@%d", p.Handle), Thread: thread, Monotonic: now})
		}
		hits = append(hits, tunlettest.Hit{Point: fmt.Sprintf("collection.until@%d", p.Handle), Thread: 0, Monotonic: now + took.Nanoseconds()})
		for i := range hits {
			change(&hits[i])
		}
		h.Records(p, 0, hits...)
		h.Round()
	}
}

func asItIs(*tunlettest.Hit) {}

func TestPairs(t *testing.T) {
	for _, tt := range []struct {
		name   string
		took   time.Duration
		change func(*tunlettest.Hit)
		refuse string
		want   string // in the reason; empty: none is proposed
	}{
		{"long", 10 * time.Millisecond, asItIs, "", "20 % in 20 collections/s of 10 ms, 100 lists"},
		{"short", time.Millisecond, asItIs, "", ""},
		{"not every hit", 10 * time.Millisecond, func(h *tunlettest.Hit) { h.Flags = sdk.RecordSampled }, "", ""},
		{"the end is of another thread", 10 * time.Millisecond, func(h *tunlettest.Hit) {
			if strings.Contains(h.Point, "until") {
				h.Thread = 5
			}
		}, "", ""},
		{"without what is optional", 10 * time.Millisecond, asItIs, "PyList_New", "of 10 ms, ? lists"},
		{"without the end", 10 * time.Millisecond, asItIs, "gc__done", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := tunlettest.New(t, newTunlet(t, collecting))
			h.Refuse = func(p *attunev1.MeasurePoint, _ *tunlettest.Process) string {
				if tt.refuse != "" && strings.Contains(p.String(), tt.refuse) {
					return "not there"
				}
				return ""
			}
			h.StartSession()
			p := tunlettest.Computing()
			p.Rates[sdk.CPUUser] = 9e8
			p.Hits = func(*attunev1.MeasurePoint) (float64, uint64) { return 100, 3 }
			h.StartProcess(p)
			collect(h, p, 40, tt.took, tt.change)
			if (len(h.Proposals) > 0) != (tt.want != "") {
				t.Fatalf("proposals %v, want %q", h.Proposals, tt.want)
			}
			if tt.want != "" && !strings.Contains(h.Proposals[0].GetReason(), tt.want) {
				t.Errorf("reason %q, want %q", h.Proposals[0].GetReason(), tt.want)
			}
		})
	}
}

// Without another point, samples set the pace.
func TestPairsAlone(t *testing.T) {
	var text strings.Builder
	for l := range strings.Lines(collecting) {
		if !strings.Contains(l, "id: lists") {
			text.WriteString(strings.ReplaceAll(l, ", ${point.lists.rate} lists", ""))
		}
	}
	objective := strings.Replace(text.String(), "value: rate.cpu_user", "value: point.collection.rate", 1)
	for name, text := range map[string]string{"objective of signals": text.String(), "objective of points": objective} {
		t.Run(name, func(t *testing.T) {
			h := tunlettest.Start(t, newTunlet(t, text), nil)
			p := h.StartProcess(tunlettest.Computing())
			p.Rates[sdk.CPUUser] = 9e8
			collect(h, p, 40, 10*time.Millisecond, asItIs)
			if len(h.Proposals) != 1 || !strings.HasPrefix(h.Proposals[0].GetReason(), "20 % in 20 collections/s of 10 ms") {
				t.Errorf("proposals %v, want one", h.Proposals)
			}
		})
	}
}

// Times that end while the overhead budget has another point off are of no interval.
func TestPairsWhileAPointIsOff(t *testing.T) {
	for _, processes := range []int{1, 2} { // alone there is no batch meanwhile
		h := tunlettest.Start(t, newTunlet(t, strings.Replace(collecting, "value: rate.cpu_user", "value: point.collection.rate", 1)), nil)
		var p *tunlettest.Process
		for range processes {
			p = tunlettest.Computing()
			p.Rates[sdk.CPUUser] = 9e8
			p.Hits = func(*attunev1.MeasurePoint) (float64, uint64) { return 100, 3 }
			h.StartProcess(p)
		}
		lists := fmt.Sprintf("lists@%d", p.Handle)
		collect(h, p, 40, 10*time.Millisecond, asItIs)
		h.SwitchOff(lists, p)
		collect(h, p, 100, 10*time.Millisecond, asItIs)
		h.SwitchOn(lists, p)
		before := len(h.Objectives)
		collect(h, p, 40, 10*time.Millisecond, asItIs)
		values := 0
		for _, o := range h.Objectives[before:] {
			if o.GetScope() != p.Handle.Scope() {
				continue
			}
			if values++; o.GetValue() < 19 || o.GetValue() > 21 {
				t.Errorf("%d processes: %v collections/s, want 20", processes, o.GetValue())
			}
		}
		if values < 30 {
			t.Errorf("%d processes: %d values after the point is back", processes, values)
		}
	}
}
