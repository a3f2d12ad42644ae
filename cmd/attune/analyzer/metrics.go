// SPDX-License-Identifier: Apache-2.0

package analyzer

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc/stats"

	"github.com/attune-hpc/attune/internal/metrics"
)

// readMetrics has the registry of metrics ask the service.
func (a *analyzerService) readMetrics() {
	a.metrics.ReadCommon(metrics.Common{
		Identity: a.identity, Connected: a.registry.Connected, Audit: a.audit, Turns: a.turns, StateDir: a.settings.stateDir,
	})
	a.metrics.Read(func(put metrics.Put) {
		if a.embedded != nil {
			put(metrics.RegistryKeeps, metrics.Truth(a.embedded.Healthy() == nil))
		}
	})
}

// connections counts those of a server.
func (a *analyzerService) connections() stats.Handler {
	c := new(connections)
	a.metrics.Read(func(put metrics.Put) { put(metrics.Connections, float64(c.open.Load())) })
	return c
}

// connections counts the connections of a gRPC server.
type connections struct{ open atomic.Int64 }

// HandleConn implements stats.Handler.
func (c *connections) HandleConn(_ context.Context, what stats.ConnStats) {
	switch what.(type) {
	case *stats.ConnBegin:
		c.open.Add(1)
	case *stats.ConnEnd:
		c.open.Add(-1)
	}
}

// TagConn implements stats.Handler.
func (*connections) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// TagRPC implements stats.Handler.
func (*connections) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC implements stats.Handler.
func (*connections) HandleRPC(context.Context, stats.RPCStats) {}
