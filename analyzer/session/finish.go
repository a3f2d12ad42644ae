// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/attune-hpc/attune/analyzer/core"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Keep has a later Settle leave changes in force that were kept, and returns
// their ids: the session's own, and those that it took over and whose processes it
// awaits.
func (s *Session) Keep(ctx context.Context) ([]string, error) {
	return View(ctx, s, func(time.Duration) []string {
		s.keep = true
		ids := slices.Collect(maps.Keys(s.inherited))
		for _, h := range s.core.Held() {
			if h.Kept {
				ids = append(ids, h.ID)
			}
		}
		slices.Sort(ids)
		return ids
	})
}

// Settle undoes what was changed in processes that still run; nothing is
// decided from then on. Controllers go on delivering. It returns when all is
// undone, or with ctx's error when that takes too long.
func (s *Session) Settle(ctx context.Context) error {
	return s.until(ctx, "settle the session", func() {
		if !s.settling {
			s.settling = true
			s.step(core.Finish{Keep: s.keep})
		}
	}, func() bool { return !s.core.Busy() })
}

// Finish tells the tunlets that the application has ended; what controllers
// deliver later does not come before that. It includes Settle. It returns when
// the tunlets have answered, or with ctx's error when that takes too long. The
// session itself goes on until Close.
func (s *Session) Finish(ctx context.Context) error {
	if err := s.Settle(ctx); err != nil {
		return err
	}
	return s.until(ctx, "finish the session", func() {
		if s.finishing {
			return
		}
		s.finishing = true
		s.emit(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Finish{Finish: &attunev1.RecordedFinish{}}})
		for _, t := range s.tunlets {
			t.applicationEnded(s.cfg.now())
		}
	}, s.toldEnd)
}

// toldEnd says whether every tunlet has heard of the end.
func (s *Session) toldEnd() bool {
	for _, t := range s.tunlets {
		if !t.toldEnd {
			return false
		}
	}
	return true
}

// Close ends the loop. It does not wait; Run returns soon afterwards.
func (s *Session) Close() {
	s.post(func() { s.closing = true })
}
