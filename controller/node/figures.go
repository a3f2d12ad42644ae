// SPDX-License-Identifier: Apache-2.0

package node

import (
	"strings"

	"github.com/attune-hpc/attune/controller/child"
	"github.com/attune-hpc/attune/controller/discover"
	"github.com/attune-hpc/attune/internal/metrics"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// figures are the node's metrics. Its methods may be called from any goroutine.
type figures struct {
	status   func() discover.Status
	sessions *sessions
	children *child.Pool
	health   *health
}

// read gives the metrics of the moment.
func (f figures) read(put metrics.Put) {
	sessions, processes := f.sessions.list(), 0
	for _, s := range sessions {
		processes += s.living()
	}
	put(metrics.NodeSessions, float64(len(sessions)))
	put(metrics.NodeProcesses, float64(processes))
	put(metrics.NodeConnections, float64(f.children.Connections()))
	status := f.status()
	put(metrics.NodeTaken, float64(status.Found))
	put(metrics.NodeEventsLost, float64(status.Lost))
	_, off := f.sessions.switchedOff()
	put(metrics.SwitchedOff, metrics.Truth(off))
	put(metrics.JournalWritable, metrics.Truth(!f.health.full.Load()))
}

// resultOf is what became of a change, as its label has it.
func resultOf(r *attunev1.ActionResult) string {
	return strings.ToLower(strings.TrimPrefix(r.GetOutcome().String(), "OUTCOME_"))
}
