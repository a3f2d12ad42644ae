// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/attune-hpc/attune/proto/attune/series"
)

// Service is a service that has metrics.
type Service string

// The services, by the value of their label "service".
const (
	Node     Service = "attuned"
	Analyzer Service = "analyzer"
)

// Kind says how the values of a metric are to be understood.
type Kind string

// The kinds, in Prometheus' words.
const (
	Counter   Kind = "counter"
	Gauge     Kind = "gauge"
	Histogram Kind = "histogram"
)

// Label tells the values of a metric apart.
type Label struct {
	Name string
	// Values are all that there are; none: what is installed at the site, at most
	// [MaxValues].
	Values []string
}

// Metric is one family of Prometheus.
type Metric struct {
	Name string
	Kind Kind
	// Of is whose it is; empty: of both services, with the label "service".
	Of Service
	// Help says what it is, in a phrase.
	Help   string
	Labels []Label
	// Buckets are the upper bounds of a histogram.
	Buckets []float64
	// Counts says that a registry keeps the value, which the service adds to; otherwise
	// the service is asked for it.
	Counts bool
	// Sometimes says when there are values, where that is not always.
	Sometimes string
}

// All returns the metrics of a service in the order of the reference page; empty: of
// both.
func All(of Service) []*Metric {
	all := slices.Concat(common, node, analyzer, applications)
	return slices.DeleteFunc(all, func(m *Metric) bool { return of != "" && m.Of != "" && m.Of != of })
}

// labels are the names of the labels that a service gives.
func (m *Metric) labels() (names []string) {
	for _, l := range m.Labels {
		names = append(names, l.Name)
	}
	return names
}

// constant are the labels of a service's own.
func (m *Metric) constant(of Service) prometheus.Labels {
	if m.Of != "" {
		return nil
	}
	return prometheus.Labels{"service": string(of)}
}

func (m *Metric) desc(of Service) *prometheus.Desc {
	return prometheus.NewDesc(m.Name, m.Help, m.labels(), m.constant(of))
}

func (m *Metric) valueType() prometheus.ValueType {
	if m.Kind == Counter {
		return prometheus.CounterValue
	}
	return prometheus.GaugeValue
}

// applications are the signals of the catalogue, added up over the processes that an
// Analyzer's sessions have, and ofSignal the same by signal.
var applications, ofSignal = fromCatalogue()

func fromCatalogue() (all []*Metric, of map[series.ID]*Metric) {
	of = make(map[series.ID]*Metric)
	for _, s := range series.Signals().Series {
		if !s.Adds() {
			continue
		}
		m := &Metric{Name: "attune_analyzer_application_" + s.Name, Kind: Gauge, Of: Analyzer}
		if s.Unit.Time() != 0 {
			m.Name += "_seconds"
		}
		whose := "of processes that run"
		if s.Kind == series.KindCounter {
			m.Kind, m.Counts = Counter, true
			m.Name += "_total"
			whose = "of processes while they were under control"
		}
		m.Help = "Sum " + whose + ": " + s.Help + "."
		all, of[s.ID] = append(all, m), m
	}
	return all, of
}

// Application returns the metric of a signal and the factor that makes its value of the
// signal's; nil for one that does not add up over processes.
func Application(id series.ID) (m *Metric, factor float64) {
	if unit := id.Series().Unit.Time(); unit != 0 {
		return ofSignal[id], unit.Seconds()
	}
	return ofSignal[id], 1
}
