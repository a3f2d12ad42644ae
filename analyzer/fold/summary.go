// SPDX-License-Identifier: Apache-2.0

package fold

import (
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/analyzer/report"
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

// shownProposals bounds a snapshot's proposals; see also shownObjectives.
const shownProposals = 64

// Snapshot returns the session as it stands at the given time since its start, for
// a live view. The result shares nothing with the account.
func (a *Account) Snapshot(at time.Duration) report.Snapshot {
	out := report.Snapshot{
		Seconds: at.Seconds(), Mode: a.header.Mode, Events: a.events(),
		Objectives: append(a.own.shown(), a.tunlets.objectives(at)...),
	}
	for _, p := range a.processes.order {
		if !p.ended {
			out.Processes++
		}
	}
	for _, p := range a.points.list {
		if !p.over {
			out.Points = append(out.Points, p.rates()...)
		}
	}
	for _, t := range a.tunlets.hosted {
		out.Tunlets = append(out.Tunlets, report.TunletState{Name: t.Name, State: t.State, Reason: t.Reason})
	}
	all := a.proposals.inOrder()
	for _, p := range all[max(0, len(all)-shownProposals):] {
		out.Proposals = append(out.Proposals, p.state())
	}
	return out
}

// Trial is a proposal that was decided about, and whose application it was.
type Trial struct {
	*attunev1.RecordedProposal
	// Application is the SHA-256 of the executable, hex, and Executable its path.
	Application, Executable string
}

// Kept says that its gain was proven, rather than that it was only given as advice
// or found useless.
func (t Trial) Kept() bool { return t.GetState() == stateKept }

// Trials returns the proposals so far whose outcome says something about the
// application: kept, found useless, or given as advice. Those whose executable
// could not be read are left out.
func (a *Account) Trials() (out []Trial) {
	for _, p := range a.proposals.inOrder() {
		telling := p.GetState() == stateKept && p.GetJudgement() != nil || p.GetState() == stateAdvised || p.GetUseless()
		if !telling || p.GetCanary() || len(p.GetChanges()) == 0 {
			continue
		}
		of := a.processes.of(p.GetChanges()[0].GetSpec().GetProcess())
		if of.info.SHA256 != "" {
			out = append(out, Trial{proto.CloneOf(p.RecordedProposal), of.info.SHA256, of.info.Exe})
		}
	}
	return out
}
