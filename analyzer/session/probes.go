// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Processes returns the images that run, the latest first, as the tunlets hear
// of them. They must not be modified.
func (s *Session) Processes(ctx context.Context) ([]*attunev1.Process, error) {
	return View(ctx, s, func(time.Duration) []*attunev1.Process {
		var out []*attunev1.Process
		for i := len(s.order) - 1; i >= 0; i-- {
			if !s.order[i].ended {
				out = append(out, s.order[i].info)
			}
		}
		return out
	})
}

// React does what a tunlet wants, as if it had answered a call with it. After
// TunletReady, and only as long as the tunlet is there.
func (s *Session) React(tunlet string, r *attunev1.Reaction) {
	s.post(func() {
		if t := s.tunlets[tunlet]; t != nil {
			s.react(t, r)
		}
	})
}
