// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"maps"
	"slices"
	"strings"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Summary is what a list of sessions shows of one.
type Summary struct {
	// Command is the application's command line.
	Command []string
	// UID is the user id of its first process.
	UID uint32
	// Hosts are the nodes of its processes, sorted.
	Hosts []string
	// Processes counts those so far, Running those that have not ended.
	Processes, Running int
	// Controllers counts those that are connected or awaited.
	Controllers int
	// Kept are the changes in force whose gain was proven.
	Kept []*attunev1.KeptChange
	// Gain is the greatest of theirs, or of those that were kept and ended with
	// their process, as a ratio; 0: none.
	Gain float64
}

// Summary returns the session as it stands. It is quick.
func (s *Session) Summary(ctx context.Context) (Summary, error) { return ask(ctx, s, s.summary) }

func (s *Session) summary() Summary {
	out := Summary{Command: s.cfg.Command, UID: s.owner, Processes: s.omitted + len(s.order), Gain: s.core.BestGain()}
	for _, c := range s.controllers {
		if c.channel != nil || c.awaited {
			out.Controllers++
		}
	}
	hosts := map[string]bool{}
	for _, p := range s.order {
		hosts[p.info.GetHost()] = true
		if !p.ended {
			out.Running++
		}
	}
	out.Hosts = slices.Sorted(maps.Keys(hosts))
	out.Kept = s.kept()
	return out
}

// kept returns the changes that whoever takes the session over has to know:
// its own, and those that it took over itself and whose processes it awaits.
func (s *Session) kept() []*attunev1.KeptChange {
	out := slices.Collect(maps.Values(s.inherited))
	for _, h := range s.core.Held() {
		if p := s.processes[h.Process]; p != nil && h.Kept {
			out = append(out, &attunev1.KeptChange{
				Id: h.ID, Host: p.info.GetHost(), Pid: int32(p.pid()), Knob: h.Knob, Tunlet: h.Tunlet, Action: h.Action, Gain: h.Gain,
			})
		}
	}
	slices.SortFunc(out, func(a, b *attunev1.KeptChange) int { return strings.Compare(a.GetId(), b.GetId()) })
	return out
}
