// SPDX-License-Identifier: Apache-2.0

package analyzer

import (
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

	mu    sync.Mutex // leaf lock; guards what follows
	state map[string]*attunev1.RecordedTunletState
	cost  tunlethost.Cost
}

// tell tells how the tunlets stand.
func (h *hosted) tell() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, st := range h.host.Status() {
		now := &attunev1.RecordedTunletState{
			Tunlet: st.Name, Version: st.Version, Summary: st.Summary, Path: st.Path, Sha256: st.SHA256,
			State: st.State, Reason: st.Reason, Restarts: uint32(st.Restarts), PeakResidentBytes: st.PeakRSS,
		}
		if !proto.Equal(h.state[st.Name], now) {
			h.state[st.Name] = now
			h.session.Tell(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_TunletState{TunletState: now}})
		}
	}
	if cost := h.host.Cost(); cost != h.cost {
		h.cost = cost
		h.tellCost(0)
	}
}

// end tells the last of it, and what this process has taken, if it is the
// controller's as well.
func (h *hosted) end() {
	h.tell()
	if h.ownCost == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tellCost(h.ownCost())
}

func (h *hosted) tellCost(own time.Duration) {
	h.session.Tell(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Cost{Cost: &attunev1.RecordedCost{
		CpuNanos: int64(h.cost.CPU), PeakResidentBytes: h.cost.PeakRSS, OwnCpuNanos: int64(own),
	}}})
}
