// SPDX-License-Identifier: Apache-2.0

package metrics

import "github.com/attune-hpc/attune/proto/attune/series"

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
