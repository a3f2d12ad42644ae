// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// MaxValues bounds the values of a label that the table does not list.
	MaxValues = 64
	// maxValue bounds one of them, bytes.
	maxValue = 64
	// other stands for what is beyond.
	other = "other"
)

// Put gives the value of a metric, with those of its labels in their order.
type Put func(m *Metric, value float64, labels ...string)

// Registry has the metrics of a service: all that the table has for it.
type Registry struct {
	of         Service
	gatherer   *prometheus.Registry
	counters   map[*Metric]*prometheus.CounterVec
	histograms map[*Metric]*prometheus.HistogramVec

	mu      sync.Mutex // guards what follows; a leaf lock
	readers []func(Put)
	values  map[valueKey]map[string]bool // of labels, so far
}

// valueKey names a label of a metric.
type valueKey struct {
	metric *Metric
	label  string
}

// New returns the registry of a service.
func New(of Service) *Registry {
	r := &Registry{
		of: of, gatherer: prometheus.NewPedanticRegistry(), values: make(map[valueKey]map[string]bool),
		counters: make(map[*Metric]*prometheus.CounterVec), histograms: make(map[*Metric]*prometheus.HistogramVec),
	}
	for _, m := range All(of) {
		switch {
		case !m.Counts:
		case m.Kind == Histogram:
			r.histograms[m] = prometheus.NewHistogramVec(prometheus.HistogramOpts{
				Name: m.Name, Help: m.Help, ConstLabels: m.constant(of), Buckets: m.Buckets,
			}, m.labels())
			r.gatherer.MustRegister(r.histograms[m])
		default:
			r.counters[m] = prometheus.NewCounterVec(prometheus.CounterOpts{Name: m.Name, Help: m.Help, ConstLabels: m.constant(of)}, m.labels())
			r.gatherer.MustRegister(r.counters[m])
			r.begin(m)
		}
	}
	r.gatherer.MustRegister(reading{r})
	return r
}

// Gatherer gives what the registry has.
func (r *Registry) Gatherer() prometheus.Gatherer { return r.gatherer }

// begin has a counter begin at 0 where all values of its labels are known: what has not
// happened yet is no gap.
func (r *Registry) begin(m *Metric) {
	switch {
	case len(m.Labels) == 0:
		r.counters[m].WithLabelValues()
	case len(m.Labels) == 1:
		for _, value := range m.Labels[0].Values {
			r.counters[m].WithLabelValues(value)
		}
	}
}

// Add adds to a counter that the registry keeps. A value below 0 is not added.
func (r *Registry) Add(m *Metric, value float64, labels ...string) {
	if r != nil && value > 0 {
		r.counters[m].WithLabelValues(r.bounded(m, labels)...).Add(value)
	}
}

// Observe adds a value to a histogram.
func (r *Registry) Observe(m *Metric, value float64, labels ...string) {
	if r != nil {
		r.histograms[m].WithLabelValues(r.bounded(m, labels)...).Observe(value)
	}
}

// Read has f asked for what the registry does not keep, each time that somebody wants to
// know, by any goroutine. f gives each value once, and must not wait.
func (r *Registry) Read(f func(Put)) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.readers = append(r.readers, f)
}

// bounded returns the values of labels, with another word for what would be too many.
func (r *Registry) bounded(m *Metric, labels []string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := slices.Clone(labels)
	for i, l := range m.Labels {
		if out[i] = strings.ToValidUTF8(out[i], "?"); !r.may(m, l, out[i]) {
			out[i] = other
		}
	}
	return out
}

// may says whether a label may have a value. The caller holds mu.
func (r *Registry) may(m *Metric, l Label, value string) bool {
	if l.Values != nil {
		return slices.Contains(l.Values, value)
	}
	key := valueKey{m, l.Name}
	known := r.values[key]
	if known[value] {
		return true
	}
	if len(known) >= MaxValues || len(value) > maxValue {
		return false
	}
	if known == nil {
		known = make(map[string]bool)
		r.values[key] = known
	}
	known[value] = true
	return true
}

// reading collects what the service is asked for.
type reading struct{ *Registry }

// Describe implements prometheus.Collector.
func (r reading) Describe(ch chan<- *prometheus.Desc) {
	for _, m := range All(r.of) {
		if !m.Counts {
			ch <- m.desc(r.of)
		}
	}
}

// Collect implements prometheus.Collector.
func (r reading) Collect(ch chan<- prometheus.Metric) {
	r.mu.Lock()
	readers := slices.Clone(r.readers)
	r.mu.Unlock()
	for _, read := range readers {
		read(func(m *Metric, value float64, labels ...string) {
			ch <- prometheus.MustNewConstMetric(m.desc(r.of), m.valueType(), value, r.bounded(m, labels)...)
		})
	}
}

// Truth is 1 or 0.
func Truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
