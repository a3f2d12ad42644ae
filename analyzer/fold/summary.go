// SPDX-License-Identifier: Apache-2.0

package fold

import (
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

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
	// Kept are the changes in force whose gain was proven, and those of an earlier
	// session whose processes are awaited.
	Kept []*attunev1.KeptChange
	// Gain is the greatest of theirs, or of those that were kept and ended with
	// their process, as a ratio; 0: none.
	Gain float64
}

// Summary returns the session as it stands.
func (a *Account) Summary() Summary {
	out := Summary{Command: slices.Clone(a.header.Command), UID: a.user, Processes: a.omitted + len(a.order)}
	for _, c := range a.controllers {
		if c.present {
			out.Controllers++
		}
	}
	hosts := map[string]bool{}
	for _, p := range a.order {
		hosts[p.info.Host] = true
		if !p.ended {
			out.Running++
		}
	}
	out.Hosts = slices.Sorted(maps.Keys(hosts))
	for _, k := range a.inherited {
		out.Kept = append(out.Kept, proto.CloneOf(k))
	}
	for _, p := range a.proposals {
		if p.GetState() == stateKept {
			out.Gain = max(out.Gain, p.GetGain())
			out.Kept = append(out.Kept, a.kept(p)...)
		}
	}
	slices.SortFunc(out.Kept, func(a, b *attunev1.KeptChange) int { return strings.Compare(a.GetId(), b.GetId()) })
	return out
}

// kept returns the changes of a kept proposal that are in force.
func (a *Account) kept(p *proposal) (out []*attunev1.KeptChange) {
	for _, ch := range p.GetChanges() {
		of := a.processes[ch.GetSpec().GetProcess()]
		if of == nil || of.ended || ch.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED {
			continue
		}
		out = append(out, &attunev1.KeptChange{
			Id: ch.GetSpec().GetId(), Host: of.info.Host, Pid: int32(of.info.PID), Knob: ch.GetSpec().GetKnob(),
			Tunlet: p.GetTunlet(), Action: ch.GetAction(), Gain: p.GetGain(),
		})
	}
	return out
}
