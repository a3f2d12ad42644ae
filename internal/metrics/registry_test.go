// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"

	"github.com/attune-hpc/attune/proto/attune/series"
)

// values returns what a registry has of a metric, by the values of its labels.
func values(t *testing.T, r *Registry, m *Metric) map[string]float64 {
	t.Helper()
	families, err := r.gatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]float64)
	for _, f := range families {
		if f.GetName() != m.Name {
			continue
		}
		for _, one := range f.GetMetric() {
			var of []string
			for _, l := range one.GetLabel() {
				of = append(of, l.GetValue())
			}
			switch f.GetType() {
			case dto.MetricType_COUNTER:
				out[strings.Join(of, ",")] = one.GetCounter().GetValue()
			case dto.MetricType_HISTOGRAM:
				out[strings.Join(of, ",")] = float64(one.GetHistogram().GetSampleCount())
			default:
				out[strings.Join(of, ",")] = one.GetGauge().GetValue()
			}
		}
	}
	return out
}

// TestTable: each metric has one place, and says when it is not there.
func TestTable(t *testing.T) {
	seen := make(map[string]bool)
	for _, m := range All("") {
		if seen[m.Name] || !regexp.MustCompile(`^attune_[a-z_]+$`).MatchString(m.Name) {
			t.Errorf("%s: there twice, or no name", m.Name)
		}
		seen[m.Name] = true
		if !strings.HasSuffix(m.Help, ".") || strings.HasSuffix(m.Name, "_total") != (m.Kind == Counter) {
			t.Errorf("%s: %s, help %q", m.Name, m.Kind, m.Help)
		}
		open := slices.ContainsFunc(m.Labels, func(l Label) bool { return l.Values == nil })
		if m.Counts && open && m.Sometimes == "" {
			t.Errorf("%s is not there before it was counted, and does not say so", m.Name)
		}
	}
}

// TestRegistry: a service has its own metrics and those of both, each value under its
// labels.
func TestRegistry(t *testing.T) {
	r := New(Node)
	r.Read(func(put Put) {
		put(BuildInfo, 1, "v1", "abc", "go1")
		put(NodeSessions, 7)
	})
	r.Add(NodeRefused, 2, RefusedPolicy)
	r.Add(NodeRefused, -1, RefusedPolicy)
	for _, c := range []struct {
		metric *Metric
		labels string
		want   float64
	}{
		{BuildInfo, "abc,go1,attuned,v1", 1}, {NodeSessions, "", 7}, {NodeRefused, RefusedPolicy, 2}, {NodeRefused, RefusedRights, 0},
	} {
		if got, is := values(t, r, c.metric)[c.labels]; !is || got != c.want {
			t.Errorf("%s{%s} %v, %v, want %v", c.metric.Name, c.labels, got, is, c.want)
		}
	}
	if got := values(t, r, Sessions); len(got) != 0 {
		t.Errorf("attuned has metrics of the Analyzer: %v", got)
	}
	var nobody *Registry
	nobody.Add(NodeRefused, 1, RefusedPolicy)
	nobody.Observe(Gain, 1, "a")
	nobody.Read(func(Put) {})
}

// TestBoundedLabels: whatever comes, a label has so many values.
func TestBoundedLabels(t *testing.T) {
	r := New(Analyzer)
	for n := range 10 * MaxValues {
		r.Observe(Gain, 2, fmt.Sprint("tunlet", n))
	}
	r.Observe(Gain, 2, strings.Repeat("x", maxValue+1))
	r.Observe(Gain, 2, "tunlet0")
	got := values(t, r, Gain)
	if len(got) != MaxValues+1 || got["tunlet0"] != 2 || got[other] != 9*MaxValues+1 {
		t.Errorf("%d values, %v of the first, %v others", len(got), got["tunlet0"], got[other])
	}
	r.Add(SessionsRefused, 1, "because")
	if got := values(t, r, SessionsRefused); got[other] != 1 {
		t.Errorf("a reason that the table has not: %v", got)
	}
	r.Observe(Gain, 1, "\xff")
	r.Add(Changes, 1, "\xff", ChangeKept)
	values(t, r, Changes) // what is no UTF-8 makes nothing fail
}

// TestApplication: signals are in base units, and those that do not add up are left out.
func TestApplication(t *testing.T) {
	if m, factor := Application(series.CPUUser); m == nil || m.Name != "attune_analyzer_application_cpu_user_seconds_total" || factor != 1e-9 {
		t.Errorf("CPU time: %+v, %v", m, factor)
	}
	if m, factor := Application(series.ResidentBytes); m == nil || m.Name != "attune_analyzer_application_resident_bytes" || factor != 1 {
		t.Errorf("memory: %+v, %v", m, factor)
	}
	for _, id := range []series.ID{series.CPUPressure, series.CPUsAllowed, 0, series.SignalSize} {
		if m, _ := Application(id); m != nil {
			t.Errorf("signal %d is added up: %s", id, m.Name)
		}
	}
}
