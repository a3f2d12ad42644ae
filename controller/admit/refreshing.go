// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/attune-hpc/attune/controller/member"
)

// refreshTimeout bounds how long patches wait for safe points of a process.
const refreshTimeout = time.Second

// refreshing keeps patches where they belong.
type refreshing struct {
	*Options
	patching member.Keep[atomic.Bool] // a goroutine patches again
}

// refresh finds processes that have unloaded or loaded libraries whose
// functions are patched, and returns how many are being patched. What waits for a
// safe point of theirs waits beside.
func (r *refreshing) refresh() (waiting int) {
	for _, t := range r.Members.List() {
		patching := r.patching.Of(t)
		if !patching.CompareAndSwap(false, true) {
			waiting++
			continue
		}
		if t.Memory() == nil || !t.Sites().Stale() {
			patching.Store(false)
			continue
		}
		waiting++
		r.Go(func() {
			defer patching.Store(false)
			ctx, cancel := context.WithTimeout(r.Context, refreshTimeout)
			defer cancel()
			if err := t.Sites().Refresh(ctx); err != nil {
				r.Log.Debug("patches of a library that was loaded again", "pid", t.PID(), "error", err)
			}
			r.Placer.Refresh(t.Handle())
		})
	}
	return waiting
}
