// SPDX-License-Identifier: Apache-2.0

package service

import (
	"github.com/attune-hpc/attune/analyzer/fold"
	"github.com/attune-hpc/attune/internal/metrics"
	"github.com/attune-hpc/attune/proto/attune/series"
)

// figures adds what a session's figures grow by to the service's metrics. It belongs to
// the session's goroutine.
type figures struct {
	metrics *metrics.Registry
	before  fold.Figures
}

// take takes the figures as they are now.
func (f *figures) take(now fold.Figures) {
	for fate, n := range now.Changes {
		f.metrics.Add(metrics.Changes, grown(n, f.before.Changes[fate]), fate.Tunlet, fate.Result)
	}
	for _, g := range now.Gains[len(f.before.Gains):] {
		f.metrics.Observe(metrics.Gain, g.Ratio, g.Tunlet)
	}
	f.metrics.Add(metrics.Received, grown(now.Received, f.before.Received))
	lost := f.before.Lost.ByPlace()
	for place, n := range now.Lost.ByPlace() {
		f.metrics.Add(metrics.Lost, grown(n, lost[place]), place)
	}
	f.metrics.Add(metrics.SessionsCPU, now.ControllerCPUSeconds-f.before.ControllerCPUSeconds, metrics.PartController)
	f.metrics.Add(metrics.SessionsCPU, now.TunletCPUSeconds-f.before.TunletCPUSeconds, metrics.PartTunlet)
	for id, n := range now.Used {
		if m, factor := metrics.Application(series.ID(id)); m != nil && m.Counts {
			f.metrics.Add(m, factor*grown(n, f.before.Used[id]))
		}
	}
	f.before = now
}

// grown is by how much a count has grown; 0 if it was begun anew.
func grown(now, before uint64) float64 { return float64(now - min(now, before)) }
