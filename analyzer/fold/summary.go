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
	// Figures are what a service adds up.
	Figures Figures
}

// Summary returns the session as it stands.
func (a *Account) Summary() Summary {
	out := Summary{Command: slices.Clone(a.header.Command), UID: a.user, Processes: a.processes.seen(), Controllers: a.controllers.present(), Figures: a.Figures()}
	hosts := map[string]bool{}
	for _, p := range a.processes.order {
		hosts[p.info.Host] = true
		if !p.ended {
			out.Running++
		}
	}
	out.Hosts = slices.Sorted(maps.Keys(hosts))
	for _, k := range a.proposals.inherited {
		out.Kept = append(out.Kept, proto.CloneOf(k))
	}
	for _, p := range a.proposals.byNumber {
		if p.GetState() == stateKept {
			out.Gain = max(out.Gain, p.GetGain())
			out.Kept = append(out.Kept, a.proposals.kept(p)...)
		}
	}
	slices.SortFunc(out.Kept, func(a, b *attunev1.KeptChange) int { return strings.Compare(a.GetId(), b.GetId()) })
	return out
}
