// SPDX-License-Identifier: Apache-2.0

package analyzer

import (
	"context"
	"slices"
	"strconv"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/analyzer/session"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// asker asks for measure points on behalf of people at another command. To the
// session it is a tunlet that wants nothing else; it lives in this process.
type asker struct {
	quiet

	session *session.Session
	name    string
	// hear is told what happens, and must not wait; nil: nobody listens.
	hear func(*attunev1.WatchProbesResponse)

	join     sync.Once
	answered chan struct{} // signalled at each answer

	mu     sync.Mutex // guards what follows; a leaf lock
	last   uint32     // number of a wish
	wishes []*wish
}

// wish is one measure point in one process.
type wish struct {
	number  uint32
	text    string
	spec    *attunev1.MeasurePoint
	process *attunev1.Process     // the image that it is asked for in
	status  *attunev1.PointStatus // nil: not answered yet
	follow  bool                  // into the children of the process
}

func newAsker(s *session.Session, name string, hear func(*attunev1.WatchProbesResponse)) *asker {
	return &asker{session: s, name: name, hear: hear, answered: make(chan struct{}, 1)}
}

// id is the point's name within the session, also in its report.
func (w *wish) id() string { return w.text + " in " + strconv.Itoa(w.pid()) }

func (w *wish) pid() int { return int(w.process.GetIdentity().GetPid()) }

// request is what the session is asked for.
func (w *wish) request() *attunev1.MeasurePoint {
	spec := proto.CloneOf(w.spec)
	spec.Id, spec.Processes = w.id(), []uint64{w.process.GetHandle()}
	return spec
}

func (w *wish) probe(owner string) *attunev1.Probe {
	return &attunev1.Probe{
		Number: w.number, Text: w.text, Owner: owner, Pid: int32(w.pid()),
		Executable: w.process.GetExecutable(), Status: w.status,
	}
}

// ask asks for every point in every process, and returns the wishes, for each
// point one per process. One that is there already is returned as it is. With
// follow, the same is asked for in their children.
func (a *asker) ask(points []*attunev1.MeasurePoint, processes []*attunev1.Process, follow bool) []*wish {
	a.join.Do(func() { a.session.TunletReady(a) })
	var asked []*wish
	var fresh []*attunev1.MeasurePoint
	a.mu.Lock()
	for _, spec := range points {
		for _, process := range processes {
			w := &wish{text: spec.GetId(), spec: spec, process: process, follow: follow}
			if i := slices.IndexFunc(a.wishes, func(o *wish) bool { return o.id() == w.id() }); i >= 0 {
				asked = append(asked, a.wishes[i])
				continue
			}
			a.add(w)
			asked, fresh = append(asked, w), append(fresh, w.request())
		}
	}
	a.mu.Unlock()
	a.session.React(a.name, &attunev1.Reaction{AddPoints: fresh})
	return asked
}

// add numbers a wish. The caller holds mu.
func (a *asker) add(w *wish) {
	a.last++
	w.number = a.last
	a.wishes = append(a.wishes, w)
}

// await returns when all wishes are answered, or ctx ends.
func (a *asker) await(ctx context.Context, asked []*wish) {
	for {
		a.mu.Lock()
		all := !slices.ContainsFunc(asked, func(w *wish) bool { return w.status == nil })
		a.mu.Unlock()
		if all {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-a.answered:
		}
	}
}

// probes tells of wishes as they stand.
func (a *asker) probes(of []*wish) []*attunev1.Probe {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := make([]*attunev1.Probe, 0, len(of))
	for _, w := range of {
		out = append(out, w.probe(OwnName))
	}
	return out
}

// chosen returns the wishes for processes, all if none is given.
func (a *asker) chosen(pids []int32) []*wish {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []*wish
	for _, w := range a.wishes {
		if len(pids) == 0 || slices.Contains(pids, int32(w.pid())) {
			out = append(out, w)
		}
	}
	return out
}

// drop takes wishes out.
func (a *asker) drop(gone []*wish) {
	if len(gone) == 0 {
		return
	}
	reaction := &attunev1.Reaction{}
	a.mu.Lock()
	for _, w := range gone {
		reaction.RemovePoints = append(reaction.RemovePoints, w.id())
	}
	a.wishes = slices.DeleteFunc(a.wishes, func(w *wish) bool { return slices.Contains(gone, w) })
	a.mu.Unlock()
	a.session.React(a.name, reaction)
}

func (a *asker) tell(event *attunev1.WatchProbesResponse) {
	if a.hear != nil {
		a.hear(event)
	}
}

// Info implements session.Tunlet.
func (a *asker) Info() *attunev1.DescribeResponse {
	return &attunev1.DescribeResponse{Name: a.name, ApiVersion: "1", Summary: "Measures what people ask for with attune probe."}
}

// Service implements session.Tunlet.
func (a *asker) Service() attunev1.TunletServiceClient { return a }

// ProcessStarted asks again in a process that has replaced its image, and for
// what follows in a child.
func (a *asker) ProcessStarted(_ context.Context, r *attunev1.ProcessStartedRequest, _ ...grpc.CallOption) (*attunev1.ProcessStartedResponse, error) {
	reaction := &attunev1.Reaction{}
	process := r.GetProcess()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, w := range a.wishes {
		if w.pid() == int(process.GetIdentity().GetPid()) && w.process.GetHandle() < process.GetHandle() {
			w.process, w.status = process, nil
			reaction.AddPoints = append(reaction.AddPoints, w.request())
		}
	}
	if !r.GetUpdate() {
		for _, w := range a.inherited(process) {
			a.add(w)
			reaction.AddPoints = append(reaction.AddPoints, w.request())
		}
	}
	return &attunev1.ProcessStartedResponse{Reaction: reaction}, nil
}

// inherited returns what a process is to have from its parent. The caller holds
// mu.
func (a *asker) inherited(process *attunev1.Process) (out []*wish) {
	for _, w := range a.wishes {
		if !w.follow || w.pid() != int(process.GetParentPid()) {
			continue
		}
		child := &wish{text: w.text, spec: w.spec, process: process, follow: true}
		if !slices.ContainsFunc(a.wishes, func(o *wish) bool { return o.id() == child.id() }) {
			out = append(out, child)
		}
	}
	return out
}

// ProcessEnded forgets what was asked for in a process, unless it lives on with
// another image.
func (a *asker) ProcessEnded(_ context.Context, r *attunev1.ProcessEndedRequest, _ ...grpc.CallOption) (*attunev1.ProcessEndedResponse, error) {
	if r.GetEnded().GetReplacedByExec() {
		return &attunev1.ProcessEndedResponse{}, nil
	}
	a.mu.Lock()
	var gone []*wish
	answered := false // else nobody has heard of the process
	for _, w := range a.wishes {
		if w.process.GetHandle() == r.GetEnded().GetProcess() {
			gone = append(gone, w)
			answered = answered || w.status != nil
		}
	}
	a.mu.Unlock()
	a.drop(gone)
	if answered {
		a.tell(&attunev1.WatchProbesResponse{Event: &attunev1.WatchProbesResponse_Ended{Ended: int32(gone[0].pid())}})
	}
	return &attunev1.ProcessEndedResponse{}, nil
}

// PointChanged notes what became of a wish.
func (a *asker) PointChanged(_ context.Context, r *attunev1.PointChangedRequest, _ ...grpc.CallOption) (*attunev1.PointChangedResponse, error) {
	var probe *attunev1.Probe
	a.mu.Lock()
	for _, w := range a.wishes {
		own := r.GetStatus().GetProcess() == w.process.GetHandle() || r.GetStatus().GetProcess() == 0
		if w.id() == r.GetPointId() && own {
			w.status = r.GetStatus()
			probe = w.probe(a.name)
		}
	}
	a.mu.Unlock()
	if probe == nil {
		return &attunev1.PointChangedResponse{}, nil
	}
	select {
	case a.answered <- struct{}{}:
	default:
	}
	a.tell(&attunev1.WatchProbesResponse{Event: &attunev1.WatchProbesResponse_Probe{Probe: probe}})
	return &attunev1.PointChangedResponse{}, nil
}

// HandleEvents passes hits on.
func (a *asker) HandleEvents(_ context.Context, r *attunev1.HandleEventsRequest, _ ...grpc.CallOption) (*attunev1.HandleEventsResponse, error) {
	if len(r.GetAggregates())+len(r.GetRecords()) > 0 {
		a.number(r.GetAggregates())
		a.tell(&attunev1.WatchProbesResponse{Event: &attunev1.WatchProbesResponse_Hits{Hits: r}})
	}
	return &attunev1.HandleEventsResponse{}, nil
}

// number replaces the session's names of points by the numbers of wishes; those
// of which there is none any more by nothing.
func (a *asker) number(aggregates []*attunev1.NamedAggregate) {
	if len(aggregates) == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	numbers := make(map[string]string, len(a.wishes))
	for _, w := range a.wishes {
		numbers[w.id()] = strconv.FormatUint(uint64(w.number), 10)
	}
	for _, named := range aggregates {
		named.PointId = numbers[named.GetPointId()]
	}
}
