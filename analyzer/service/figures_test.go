// SPDX-License-Identifier: Apache-2.0

package service

import (
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attune-hpc/attune/analyzer/fold"
	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/internal/metrics"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/proto/attune/series"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// scraped returns what a registry answers, line by line.
func scraped(r *metrics.Registry) []string {
	answer := httptest.NewRecorder()
	r.Handler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	return strings.Split(answer.Body.String(), "\n")
}

// TestMetrics: a service counts sessions, what they lose and cost, also of those that have
// ended, and names nobody.
func TestMetrics(t *testing.T) {
	p := newPlace(t)
	m := metrics.New(metrics.Analyzer)
	a := p.analyzer("a", func(c *Config) { c.Metrics = m })
	ann := p.people(p.pki.User(t, "ann", 4711), a)
	id := register(t, a, ann, &attunev1.Registration{Executable: "solver", Mode: "observe"})
	c := p.dial(a, hello("n1", id, job), 1)
	sample := func(faults uint64) {
		c.publish(&attunev1.PublishRequest{Event: &attunev1.PublishRequest_Samples{Samples: &attunev1.SampleBatch{Samples: []*attunev1.Sample{{
			Process: 1, Tables: []*attunev1.Table{series.SignalTable(
				series.Reading{ID: series.MinorFaults, Value: faults}, series.Reading{ID: series.ResidentBytes, Value: 4096},
				series.Reading{ID: series.RunTime, Value: 2e9 * faults},
			)},
		}}}}})
	}
	sample(1)
	sample(3)
	c.send(&attunev1.ManageRequest{Message: &attunev1.ManageRequest_Status{Status: &attunev1.ControllerStatus{CpuSeconds: 1.5, RecordsLostRing: 7, RecordsLostBpf: 2}}})
	has := func(what string, lines ...string) {
		t.Helper()
		patience.Until(t, what, func() bool {
			now := scraped(m)
			return !slices.ContainsFunc(lines, func(l string) bool { return !slices.Contains(now, l) })
		})
	}
	counted := []string{
		"attune_analyzer_sessions_begun_total 1",
		`attune_analyzer_records_lost_total{place="ring"} 7`, `attune_analyzer_records_lost_total{place="bpf"} 2`,
		`attune_analyzer_sessions_cpu_seconds_total{part="controller"} 1.5`,
		"attune_analyzer_application_minor_faults_total 2", "attune_analyzer_application_run_time_seconds_total 4",
	}
	has("figures of a session that runs", append(counted,
		"attune_analyzer_sessions 1", "attune_analyzer_registrations_owned 1", "attune_analyzer_application_resident_bytes 4096")...)
	for _, line := range scraped(m) {
		for _, secret := range []string{"ann", "4711", "solver", "n1", id, job.GetId() + `"`} {
			if !strings.HasPrefix(line, "#") && strings.Contains(line, `"`) && strings.Contains(line, secret) {
				t.Errorf("%q is told: %s", secret, line)
			}
		}
	}
	c.stop(1)
	c.leave()
	patience.Until(t, "the end of the session", func() bool { a.pass(); return a.Status().Sessions == 0 })
	has("figures of a session that has ended", append(counted, "attune_analyzer_sessions 0", "attune_analyzer_application_resident_bytes 0")...)
}

// TestFiguresGrow: what comes twice is counted once, and a controller that begins anew takes
// nothing away.
func TestFiguresGrow(t *testing.T) {
	m := metrics.New(metrics.Analyzer)
	f := figures{metrics: m}
	kept := fold.Fate{Tunlet: "malloc", Result: metrics.ChangeKept}
	first := fold.Figures{
		Changes: map[fold.Fate]uint64{kept: 1}, Gains: []fold.Gain{{Tunlet: "malloc", Ratio: 1.3}}, Lost: report.Lost{Ring: 5}, TunletCPUSeconds: 2,
	}
	f.take(first)
	f.take(first)
	second := first
	second.Changes, second.Gains = map[fold.Fate]uint64{kept: 3}, append(slices.Clone(first.Gains), fold.Gain{Tunlet: "malloc", Ratio: 2})
	second.Lost.Ring, second.TunletCPUSeconds = 1, 1
	f.take(second)
	lines := scraped(m)
	for _, want := range []string{
		`attune_analyzer_changes_total{result="kept",tunlet="malloc"} 3`, `attune_analyzer_gain_ratio_count{tunlet="malloc"} 2`,
		`attune_analyzer_gain_ratio_bucket{tunlet="malloc",le="1.5"} 1`,
		`attune_analyzer_records_lost_total{place="ring"} 5`, `attune_analyzer_sessions_cpu_seconds_total{part="tunlet"} 2`,
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("without %s", want)
		}
	}
}

// TestPlaces: metrics have the places of losses that the report has.
func TestPlaces(t *testing.T) {
	got, want := slices.Sorted(slices.Values(metrics.Lost.Labels[0].Values)), slices.Sorted(maps.Keys(report.Lost{}.ByPlace()))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
