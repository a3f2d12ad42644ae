// SPDX-License-Identifier: Apache-2.0

package analyzer

import (
	"context"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/analyzer/session"
	"github.com/attune-hpc/attune/analyzer/tunlethost"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// hosted tells the session what the host knows of the tunlets' processes, as far as
// it is news.
type hosted struct {
	host    *tunlethost.Host
	session *session.Session
	ownCost func() time.Duration // nil: the controllers say what they take

	// mu guards what follows. It is held while the session is told, which may wait, so
	// that news come in order: before the locks of host and session.
	mu    sync.Mutex
	state map[string]*attunev1.RecordedTunletState
	cost  tunlethost.Cost
}

// tell tells how the tunlets stand. What it cannot tell before ctx ends is news yet.
func (h *hosted) tell(ctx context.Context) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, now := range h.host.Status() {
		if proto.Equal(h.state[now.GetTunlet()], now) {
			continue
		}
		frame := &attunev1.RecordingFrame{What: &attunev1.RecordingFrame_TunletState{TunletState: now}}
		if h.session.TellWithin(ctx, frame) == nil {
			h.state[now.GetTunlet()] = now
		}
	}
	if cost := h.host.Cost(); cost != h.cost && h.tellCost(ctx, cost, 0) == nil {
		h.cost = cost
	}
}

// end tells the last of it, and what this process has taken, if it is the
// controller's as well.
func (h *hosted) end() {
	h.tell(context.Background())
	if h.ownCost == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	_ = h.tellCost(context.Background(), h.cost, h.ownCost()) // it fails where the session has ended
}

func (h *hosted) tellCost(ctx context.Context, cost tunlethost.Cost, own time.Duration) error {
	return h.session.TellWithin(ctx, &attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Cost{Cost: &attunev1.RecordedCost{
		CpuNanos: int64(cost.CPU), PeakResidentBytes: cost.PeakRSS, OwnCpuNanos: int64(own),
	}}})
}
