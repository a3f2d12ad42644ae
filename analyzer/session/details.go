// SPDX-License-Identifier: Apache-2.0

package session

import (
	"slices"

	"google.golang.org/protobuf/proto"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// wantSamples takes over which samples of a process a tunlet wants.
func (s *Session) wantSamples(t *tunlet, i *attunev1.SampleInterest) {
	if p := s.processes[i.GetProcess()]; p != nil && !p.ended {
		t.feed.Set(&attunev1.SampleInterest{Process: i.GetProcess(), All: i.GetAll(), Levels: limit(i.GetLevels(), maxLevels)})
	}
}

// wantDetails takes over which details of a process a tunlet wants. The
// controllers are told at the next tick, once for all that changes until then.
func (s *Session) wantDetails(t *tunlet, i *attunev1.TableWant) {
	p := s.processes[i.GetProcess()]
	if p == nil || p.ended || !t.feed.SetDetails(i) {
		return
	}
	p.controller.detailsDue = true
	s.hurry()
}

// dropDetails notes that a tunlet wants none any more.
func (s *Session) dropDetails(t *tunlet) {
	for id := range t.feed.Details() {
		if p := s.processes[id]; p != nil {
			p.controller.detailsDue = true
		}
	}
}

// tellDetails tells the controllers which details the tunlets want by now.
func (s *Session) tellDetails() {
	for _, c := range s.controllers {
		if !c.detailsDue || c.channel == nil {
			continue
		}
		c.detailsDue = false
		wanted := s.detailsOf(c)
		if proto.Equal(wanted, c.details) {
			continue
		}
		c.details = wanted
		s.send(c, &attunev1.ManageResponse{Request: &attunev1.ManageResponse_Details{Details: wanted}})
	}
}

// detailsOf is what all tunlets together want of a controller's processes, and what
// would wake one, in the order of its handles.
func (s *Session) detailsOf(c *controller) *attunev1.SetDetails {
	kinds := map[uint64][]uint32{}
	for _, t := range s.tunlets {
		for id, wanted := range t.feed.Details() {
			if p := s.processes[id]; p != nil && p.controller == c && !p.ended {
				kinds[p.handle] = append(kinds[p.handle], wanted...)
			}
		}
	}
	for id, kind := range s.sleepers.watch.Details() {
		if p := s.processes[id]; p != nil && p.controller == c && !p.ended {
			kinds[p.handle] = append(kinds[p.handle], kind)
		}
	}
	out := &attunev1.SetDetails{}
	for handle, list := range kinds {
		slices.Sort(list)
		out.Wants = append(out.Wants, &attunev1.TableWant{Process: handle, Tables: slices.Compact(list)})
	}
	slices.SortFunc(out.Wants, func(a, b *attunev1.TableWant) int {
		return int(min(1, max(-1, int64(a.GetProcess()-b.GetProcess()))))
	})
	return out
}
