// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Processes returns the images that run, the latest first, as the tunlets hear
// of them. They must not be modified.
func (s *Session) Processes(ctx context.Context) ([]*attunev1.Process, error) {
	return ask(ctx, s, func() []*attunev1.Process {
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

// Probes returns every measure point in every running process that has
// answered, once for each tunlet that asked for it; Text is its id.
func (s *Session) Probes(ctx context.Context) ([]*attunev1.Probe, error) {
	return ask(ctx, s, func() []*attunev1.Probe {
		var out []*attunev1.Probe
		for _, p := range s.points.list {
			for _, sub := range p.subscribers {
				out = append(out, s.probesOf(p, sub)...)
			}
		}
		return out
	})
}

func (s *Session) probesOf(p *point, sub subscriber) (out []*attunev1.Probe) {
	for _, process := range s.order {
		st := p.status[process.id]
		if st == nil || process.ended {
			continue
		}
		out = append(out, &attunev1.Probe{
			Text: sub.id, Owner: sub.tunlet.name, Pid: int32(process.pid()),
			Executable: process.info.GetExecutable(), Status: st, Hits: p.hitsIn[process.id],
		})
	}
	return out
}
