// SPDX-License-Identifier: Apache-2.0

package fold

import (
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/analyzer/report"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// maxRemarks bounds the remarks that are kept for the report.
const maxRemarks = 200

// Account is what there is to say of a session. The zero value is not ready: use
// [NewAccount].
type Account struct {
	header *report.Report // what the header says
	start  time.Time
	at     time.Duration // of the latest frame
	news   bool          // that one says something new of its process or point
	user   uint32        // of the first process
	// first is the first process where its command line stands for the session's: the
	// owner has given none. It is that of its last image: a batch system hands over a
	// process which has not executed the program yet.
	first   *attunev1.ProcessIdentity
	end     ending
	remarks bothEnds[report.Remark]

	processes   processes
	points      points
	proposals   proposals
	tunlets     tunlets
	controllers controllers
	counts      report.Events
	fates       fates
	signals     signals
	own         owned
}

// NewAccount returns an account of a session of which nothing is known.
func NewAccount() *Account {
	a := &Account{
		header: report.New(), processes: processes{byHandle: map[uint64]*process{}}, points: newPoints(),
		tunlets: newTunlets(), controllers: controllers{},
		fates: fates{changes: map[Fate]uint64{}, last: map[string]fated{}}, signals: signals{of: map[uint64]*sampled{}, nodes: map[string]*onNode{}},
	}
	a.proposals = proposals{byNumber: map[uint64]*proposal{}, processes: &a.processes, tunlets: &a.tunlets, own: &a.own}
	return a
}

// Take takes one frame.
func (a *Account) Take(f *attunev1.RecordingFrame) {
	a.at = time.Duration(f.GetAtNanos())
	switch k := f.GetWhat().(type) {
	case *attunev1.RecordingFrame_Samples:
		a.samples(k.Samples)
	case *attunev1.RecordingFrame_Aggregates:
		a.aggregates(k.Aggregates)
	case *attunev1.RecordingFrame_Records:
		a.counts.Records += a.points.records(k.Records)
	case *attunev1.RecordingFrame_Measured:
		a.own.take(k.Measured)
	case *attunev1.RecordingFrame_Tick:
		a.points.tick(a.at)
	case *attunev1.RecordingFrame_Point:
		a.points.add(k.Point)
	case *attunev1.RecordingFrame_PointEnd:
		a.points.retire(k.PointEnd.GetPoint())
	case *attunev1.RecordingFrame_Asked:
		a.points.ask(k.Asked, a.processes.pid(k.Asked.GetProcess()))
	case *attunev1.RecordingFrame_PointStatus:
		a.news = a.points.state(k.PointStatus, a.processes.pid(k.PointStatus.GetProcess()), a.at)
	case *attunev1.RecordingFrame_Reaction:
		a.tunlets.react(k.Reaction, a.at)
	case *attunev1.RecordingFrame_Decision:
		a.fates.take(a.proposals.take(k.Decision.GetProposal()))
	case *attunev1.RecordingFrame_Proposal:
		a.fates.take(a.proposals.take(k.Proposal))
	case *attunev1.RecordingFrame_Omission:
		a.processes.forget(k.Omission.GetProcess())
		a.signals.gone(k.Omission.GetProcess())
		a.fates.forget(a.proposals.forget(k.Omission))
	default:
		a.takeRare(f)
	}
}

// takeRare takes news of processes, tunlets, controllers and of the session.
func (a *Account) takeRare(f *attunev1.RecordingFrame) {
	switch k := f.GetWhat().(type) {
	case *attunev1.RecordingFrame_Header:
		a.begin(k.Header)
	case *attunev1.RecordingFrame_Process:
		a.news = a.processes.byHandle[k.Process.GetProcess().GetHandle()] == nil
		a.process(k.Process.GetProcess()).started = time.Duration(k.Process.GetStartedNanos())
	case *attunev1.RecordingFrame_ProcessStarted:
		a.process(k.ProcessStarted.GetProcess())
	case *attunev1.RecordingFrame_ProcessGone:
		a.processGone(k.ProcessGone)
	case *attunev1.RecordingFrame_Tunlet:
		a.tunlets.ready(k.Tunlet.GetInfo())
	case *attunev1.RecordingFrame_TunletEnd:
		a.tunlets.gone(k.TunletEnd.GetTunlet())
	case *attunev1.RecordingFrame_TunletState:
		a.tunlets.state(k.TunletState)
	case *attunev1.RecordingFrame_Cost:
		a.tunlets.spent(k.Cost)
	case *attunev1.RecordingFrame_Controller:
		a.controllers.state(k.Controller)
	case *attunev1.RecordingFrame_Status:
		a.controllers.of(k.Status.GetController()).status = proto.CloneOf(k.Status.GetStatus())
	case *attunev1.RecordingFrame_Losses:
		a.counts.Lost.Analyzer = k.Losses.GetAnalyzer()
		a.tunlets.lose(k.Losses.GetTunlets())
	case *attunev1.RecordingFrame_Remark:
		a.remark(k.Remark)
	case *attunev1.RecordingFrame_Exit:
		a.ends(k.Exit)
	}
}

// begin takes over what the session is.
func (a *Account) begin(h *attunev1.RecordingHeader) {
	a.start = time.Unix(0, h.GetStartUnixNano())
	r := a.header
	r.Version, r.JobID, r.Mode = h.GetVersion(), h.GetApplication().GetSessionId(), h.GetApplication().GetMode()
	r.Command, r.StartedAt = append(r.Command, h.GetApplication().GetCommand()...), a.start
	a.own.begin(h.GetObjective())
	for _, k := range h.GetInherited() {
		a.proposals.inherited = append(a.proposals.inherited, proto.CloneOf(k))
	}
}

func (a *Account) samples(b *attunev1.SampleBatch) {
	a.counts.Samples += uint64(len(b.GetSamples()))
	for _, one := range b.GetSamples() {
		if p := a.processes.of(one.GetProcess()); !p.ended { // nobody would forget it again
			a.signals.take(one, p)
		}
	}
}

func (a *Account) aggregates(b *attunev1.AggregateBatch) {
	a.counts.Aggregates += uint64(len(b.GetAggregates()))
	for _, one := range b.GetAggregates() {
		a.counts.Hits += one.GetCount()
		a.points.sum(one)
	}
}

func (a *Account) remark(r *attunev1.RecordedRemark) {
	a.remarks.add(report.Remark{
		Seconds: a.at.Seconds(), From: r.GetFrom(), Process: a.processes.pid(r.GetProcess()), Text: r.GetText(),
	}, maxRemarks)
}

// process takes over what a process is. The first says what the application is.
func (a *Account) process(info *attunev1.Process) *process {
	if a.processes.seen() == 0 {
		a.user = info.GetUid()
		if len(a.header.Command) == 0 {
			a.first = info.GetIdentity()
		}
	}
	if len(info.GetCommandLine()) > 0 && sameProcess(a.first, info.GetIdentity()) {
		a.header.Command = slices.Clone(info.GetCommandLine())
	}
	a.signals.node(info.GetHost()).could(info.GetAvailable())
	return a.processes.tell(info)
}

// sameProcess tells processes apart, whatever they execute.
func sameProcess(a, b *attunev1.ProcessIdentity) bool {
	return a != nil && a.GetPid() == b.GetPid() && a.GetStartTicks() == b.GetStartTicks() && a.GetBootId() == b.GetBootId()
}

func (a *Account) processGone(end *attunev1.RecordedProcessEnd) {
	a.signals.gone(end.GetEnded().GetProcess())
	p := a.processes.byHandle[end.GetEnded().GetProcess()]
	if a.news = p != nil && p.mayGoOn() && !end.GetGoingOn(); p == nil {
		return
	}
	p.end(end)
	a.signals.settle(p, end.GetEnded().GetTaken())
	a.points.processGone(p.handle, p.replacedByExec)
}

// ends takes over how the application ended.
func (a *Account) ends(e *attunev1.RecordedExit) {
	a.end = endingOf(e, a.start, a.at)
	if e.GetReason() != "" {
		a.remark(&attunev1.RecordedRemark{From: report.OwnerName, Text: "The session was ended: " + e.GetReason() + "."})
	}
}

// At is the time of the latest frame since the session's start.
func (a *Account) At() time.Duration { return a.at }

// Image returns the image behind a handle; of an unknown one an empty one.
func (a *Account) Image(handle uint64) Image { return a.processes.of(handle).image() }

// Running returns the images that run, the latest first.
func (a *Account) Running() []Image { return a.processes.running() }

// Point returns what a measure point is and what became of it in each running
// process; nil: there is none of that index. They are not to be modified.
func (a *Account) Point(index uint32) (*attunev1.MeasurePoint, map[uint64]*attunev1.PointStatus) {
	p := a.points.byIndex[index]
	if p == nil {
		return nil, nil
	}
	return p.spec, p.status
}

// Probes returns every measure point in every running process that has answered,
// once for each asker, with the number of the wish.
func (a *Account) Probes() []*attunev1.Probe { return a.points.probes(a.processes.order) }
