// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"github.com/attune-hpc/attune/controller/bpf/procevent"
	"github.com/attune-hpc/attune/controller/track"
	"github.com/attune-hpc/attune/internal/queue"
)

// newView adds a view of a user. All views of a user have one share of what the kernel follows:
// their ids have the same remainder.
func (h *hub) newView(uid uint32) *view {
	h.mu.Lock()
	defer h.mu.Unlock()
	share := h.shareOf(uid)
	h.lastID++
	h.lastID += (share + procevent.Shares - h.lastID%procevent.Shares) % procevent.Shares
	v := &view{of: h, id: h.lastID, uid: uid, events: queue.New[track.Event](viewQueue)}
	h.views[v.id] = v
	return v
}

// shareOf is the share of a user's views, or one that nobody has, if there is any. The caller holds
// mu.
func (h *hub) shareOf(uid uint32) uint32 {
	taken := make(map[uint32]bool)
	for id, v := range h.views {
		if v.uid == uid {
			return id % procevent.Shares
		}
		taken[id%procevent.Shares] = true
	}
	next := h.lastID + 1
	for len(taken) < procevent.Shares && taken[next%procevent.Shares] {
		next++
	}
	return next % procevent.Shares
}
