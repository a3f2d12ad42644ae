// SPDX-License-Identifier: Apache-2.0

package fold

import (
	"maps"

	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/proto/attune/series"
)

// Figures are what a service adds up over its sessions. All but Held only grow while the
// session lasts, but for what controllers say anew after they were started again.
type Figures struct {
	// Changes counts what became of changes.
	Changes map[Fate]uint64
	// Gains are those of proposals that were kept, in order, each only added at the end;
	// the first maxGains of them.
	Gains []Gain
	// Received counts records, aggregates and samples.
	Received uint64
	Lost     report.Lost
	// ControllerCPUSeconds and TunletCPUSeconds are what watching and tuning cost.
	ControllerCPUSeconds, TunletCPUSeconds float64
	// Used is how much the signals that are counters have grown, over all processes since
	// their first sample; by signal.
	Used [series.SignalSize]uint64
	// Held is the sum of the signals that are gauges, over the processes that run.
	Held [series.SignalSize]uint64
}

// Figures returns the session as it stands.
func (a *Account) Figures() Figures {
	e, o := a.events(), a.overhead()
	f := Figures{
		Gains:    a.fates.gains[:len(a.fates.gains):len(a.fates.gains)],
		Received: e.Received, Lost: e.Lost,
		ControllerCPUSeconds: o.ControllerCPUSeconds, TunletCPUSeconds: o.TunletCPUSeconds, Used: a.signals.used,
	}
	if len(a.fates.changes) > 0 {
		f.Changes = maps.Clone(a.fates.changes)
	}
	for _, p := range a.signals.of {
		for id, value := range p.latest {
			if series.ID(id).Gauge() {
				f.Held[id] += value
			}
		}
	}
	return f
}
