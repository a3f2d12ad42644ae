// SPDX-License-Identifier: Apache-2.0

package fold

import (
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/analyzer/report"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	// maxRemarks bounds the remarks that are kept for the report.
	maxRemarks = 200
	// maxScopes bounds the latest objectives of a tunlet, for the live view.
	maxScopes = 64
)

// Account is what there is to say of a session. The zero value is not ready: use
// [NewAccount].
type Account struct {
	header  *report.Report // what the header says
	start   time.Time
	at      time.Duration // of the latest frame
	news    bool          // that one says something new of its process or point
	user    uint32        // of the first process
	end     ending
	remarks []report.Remark

	processes map[uint64]*process
	order     []*process // in the order seen
	omitted   int        // processes that were forgotten

	points    points
	proposals map[uint64]*proposal
	unlisted  uint64 // proposals that were forgotten
	inherited []*attunev1.KeptChange

	tunlets     map[string]*tunlet
	hosted      []report.Tunlet // in the order in which the host has them
	cost        cost            // of their processes
	controllers map[string]*controller
	counts      report.Events
	lost        map[string]uint64 // by tunlet
}

// tunlet is one that can be talked to, or could.
type tunlet struct {
	objective *attunev1.Objective
	latest    map[string]float64 // values of its objective by scope, bounded
}

// cost is what the tunlets' processes have taken together.
type cost struct {
	cpu    time.Duration
	memory uint64 // bytes, at most at a time
	// own is that of the process of Analyzer and controller; 0: it is not one.
	own time.Duration
}

// controller is one controller.
type controller struct {
	present bool // connected, or awaited
	status  *attunev1.ControllerStatus
}

// NewAccount returns an account of a session of which nothing is known.
func NewAccount() *Account {
	return &Account{
		header: report.New(), processes: map[uint64]*process{}, points: newPoints(),
		proposals: map[uint64]*proposal{}, tunlets: map[string]*tunlet{},
		controllers: map[string]*controller{}, lost: map[string]uint64{},
	}
}

// Take takes one frame.
func (a *Account) Take(f *attunev1.RecordingFrame) {
	a.at = time.Duration(f.GetAtNanos())
	switch k := f.GetWhat().(type) {
	case *attunev1.RecordingFrame_Samples:
		a.counts.Samples += uint64(len(k.Samples.GetSamples()))
	case *attunev1.RecordingFrame_Aggregates:
		a.aggregates(k.Aggregates)
	case *attunev1.RecordingFrame_Records:
		a.counts.Records += a.points.records(k.Records)
	case *attunev1.RecordingFrame_Tick:
		a.points.tick(a.at)
	case *attunev1.RecordingFrame_Point:
		a.points.add(k.Point)
	case *attunev1.RecordingFrame_PointEnd:
		a.points.retire(k.PointEnd.GetPoint())
	case *attunev1.RecordingFrame_Asked:
		a.ask(k.Asked)
	case *attunev1.RecordingFrame_PointStatus:
		a.pointStatus(k.PointStatus)
	case *attunev1.RecordingFrame_Reaction:
		a.objectives(k.Reaction)
	case *attunev1.RecordingFrame_Decision:
		a.propose(k.Decision.GetProposal())
	case *attunev1.RecordingFrame_Proposal:
		a.propose(k.Proposal)
	case *attunev1.RecordingFrame_Omission:
		a.omit(k.Omission)
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
		a.news = a.processes[k.Process.GetProcess().GetHandle()] == nil
		a.process(k.Process.GetProcess()).started = time.Duration(k.Process.GetStartedNanos())
	case *attunev1.RecordingFrame_ProcessStarted:
		a.process(k.ProcessStarted.GetProcess())
	case *attunev1.RecordingFrame_ProcessGone:
		a.processGone(k.ProcessGone)
	case *attunev1.RecordingFrame_Tunlet:
		info := k.Tunlet.GetInfo()
		a.tunlets[info.GetName()] = &tunlet{objective: proto.CloneOf(info.GetObjective()), latest: map[string]float64{}}
	case *attunev1.RecordingFrame_TunletEnd:
		if t := a.tunlets[k.TunletEnd.GetTunlet()]; t != nil {
			clear(t.latest)
		}
	case *attunev1.RecordingFrame_TunletState:
		a.hostedTunlet(k.TunletState)
	case *attunev1.RecordingFrame_Cost:
		a.cost = cost{
			cpu: time.Duration(k.Cost.GetCpuNanos()), memory: k.Cost.GetPeakResidentBytes(), own: time.Duration(k.Cost.GetOwnCpuNanos()),
		}
	case *attunev1.RecordingFrame_Controller:
		if st := k.Controller.GetState(); st != attunev1.ControllerState_CONTROLLER_STATE_UNSPECIFIED {
			a.controller(k.Controller.GetController()).present = st != attunev1.ControllerState_CONTROLLER_STATE_GONE
		}
	case *attunev1.RecordingFrame_Status:
		a.controller(k.Status.GetController()).status = proto.CloneOf(k.Status.GetStatus())
	case *attunev1.RecordingFrame_Losses:
		a.counts.Lost.Analyzer = k.Losses.GetAnalyzer()
		for _, t := range k.Losses.GetTunlets() {
			a.lost[t.GetTunlet()] = t.GetEvents()
		}
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
	for _, k := range h.GetInherited() {
		a.inherited = append(a.inherited, proto.CloneOf(k))
	}
}

func (a *Account) aggregates(b *attunev1.AggregateBatch) {
	a.counts.Aggregates += uint64(len(b.GetAggregates()))
	for _, one := range b.GetAggregates() {
		a.counts.Hits += one.GetCount()
		a.points.sum(one)
	}
}

// objectives keeps the latest values of a tunlet's objective.
func (a *Account) objectives(r *attunev1.RecordedReaction) {
	t := a.tunlets[r.GetTunlet()]
	if t == nil {
		return
	}
	for _, o := range r.GetReaction().GetObjectives() {
		if _, ok := t.latest[o.GetScope()]; ok || len(t.latest) < maxScopes {
			t.latest[o.GetScope()] = o.GetValue()
		}
	}
}

func (a *Account) remark(r *attunev1.RecordedRemark) {
	if len(a.remarks) < maxRemarks {
		a.remarks = append(a.remarks, report.Remark{
			Seconds: a.at.Seconds(), From: r.GetFrom(), Process: a.pid(r.GetProcess()), Text: r.GetText(),
		})
	}
}

// hostedTunlet takes over how a tunlet's process stands.
func (a *Account) hostedTunlet(st *attunev1.RecordedTunletState) {
	i := slices.IndexFunc(a.hosted, func(t report.Tunlet) bool { return t.Name == st.GetTunlet() })
	if i < 0 {
		i = len(a.hosted)
		a.hosted = append(a.hosted, report.Tunlet{})
	}
	a.hosted[i] = report.Tunlet{
		Name: st.GetTunlet(), Version: st.GetVersion(), Summary: st.GetSummary(), Path: st.GetPath(), SHA256: st.GetSha256(),
		State: st.GetState(), Reason: st.GetReason(), Restarts: int(st.GetRestarts()), PeakRSSBytes: st.GetPeakResidentBytes(),
	}
}

func (a *Account) controller(id string) *controller {
	c := a.controllers[id]
	if c == nil {
		c = &controller{}
		a.controllers[id] = c
	}
	return c
}
