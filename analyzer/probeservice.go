// SPDX-License-Identifier: Apache-2.0

package analyzer

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/attune-hpc/attune/analyzer/fold"
	"github.com/attune-hpc/attune/analyzer/session"
	"github.com/attune-hpc/attune/internal/queue"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	// answerPatience is how long AddProbes waits for processes to come to a
	// safe point.
	answerPatience = 5 * time.Second
	// watchQueue bounds the messages that wait for a client that watches.
	watchQueue = 256
)

// probeService serves the measure points that people ask for.
type probeService struct {
	attunev1.UnimplementedProbeServiceServer

	session  *session.Session
	account  *fold.Account
	lasting  *asker
	watchers atomic.Uint64 // so far
}

func newProbeService(s *session.Session, account *fold.Account) *probeService {
	return &probeService{session: s, account: account, lasting: newAsker(s, OwnName+" probe", nil)}
}

// AddProbes implements the service.
func (p *probeService) AddProbes(ctx context.Context, r *attunev1.AddProbesRequest) (*attunev1.AddProbesResponse, error) {
	processes, err := p.processes(ctx, r.GetPids())
	if err != nil {
		return nil, err
	}
	if err := check(r.GetPoints()); err != nil {
		return nil, err
	}
	asked := p.lasting.ask(r.GetPoints(), processes, r.GetFollow())
	ctx, cancel := context.WithTimeout(ctx, answerPatience)
	defer cancel()
	p.lasting.await(ctx, asked)
	return &attunev1.AddProbesResponse{Probes: p.lasting.probes(asked)}, nil
}

func check(points []*attunev1.MeasurePoint) error {
	if len(points) == 0 {
		return status.Error(codes.InvalidArgument, "no measure point")
	}
	for _, point := range points {
		if point.GetId() == "" || point.GetTarget() == nil {
			return status.Error(codes.InvalidArgument, "a measure point needs an id and a target")
		}
	}
	return nil
}

// processes finds the images that run under the ids.
func (p *probeService) processes(ctx context.Context, pids []int32) ([]*attunev1.Process, error) {
	if len(pids) == 0 {
		return nil, status.Error(codes.InvalidArgument, "no process")
	}
	live, err := p.session.Processes(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]*attunev1.Process, 0, len(pids))
	for _, pid := range pids {
		at := slices.IndexFunc(live, func(l *attunev1.Process) bool { return l.GetIdentity().GetPid() == pid })
		if at < 0 {
			return nil, status.Error(codes.NotFound, fmt.Sprintf("process %d is not in this session", pid))
		}
		out = append(out, live[at])
	}
	return out, nil
}

// ListProbes implements the service.
func (p *probeService) ListProbes(ctx context.Context, r *attunev1.ListProbesRequest) (*attunev1.ListProbesResponse, error) {
	probes, err := session.View(ctx, p.session, func(time.Duration) []*attunev1.Probe { return p.account.Probes() })
	if err != nil {
		return nil, err
	}
	live, err := p.session.Processes(ctx)
	if err != nil {
		return nil, err
	}
	out := &attunev1.ListProbesResponse{}
	for _, l := range live {
		out.Pids = append(out.Pids, l.GetIdentity().GetPid())
	}
	own := p.lasting.chosen(nil)
	for _, probe := range probes {
		if len(r.GetPids()) > 0 && !slices.Contains(r.GetPids(), probe.GetPid()) {
			continue
		}
		if i := slices.IndexFunc(own, func(w *wish) bool { return w.id() == probe.GetText() }); i >= 0 && probe.GetOwner() == p.lasting.name {
			probe.Number = own[i].number
		}
		probe.Text = strings.TrimSuffix(probe.GetText(), fmt.Sprintf(" in %d", probe.GetPid()))
		out.Probes = append(out.Probes, probe)
	}
	return out, nil
}

// RemoveProbes implements the service.
func (p *probeService) RemoveProbes(_ context.Context, r *attunev1.RemoveProbesRequest) (*attunev1.RemoveProbesResponse, error) {
	gone := slices.DeleteFunc(p.lasting.chosen(r.GetPids()), func(w *wish) bool {
		return len(r.GetProbes()) > 0 && !slices.Contains(r.GetProbes(), w.text) &&
			!slices.Contains(r.GetProbes(), strconv.FormatUint(uint64(w.number), 10))
	})
	out := &attunev1.RemoveProbesResponse{Probes: p.lasting.probes(gone)}
	p.lasting.drop(gone)
	return out, nil
}

// Lasting returns how many measure points people have added and not removed.
func (p *probeService) Lasting() int { return len(p.lasting.chosen(nil)) }

// WatchProbes implements the service.
func (p *probeService) WatchProbes(r *attunev1.WatchProbesRequest, stream grpc.ServerStreamingServer[attunev1.WatchProbesResponse]) error {
	ctx := stream.Context()
	processes, err := p.processes(ctx, r.GetPids())
	if err != nil {
		return err
	}
	w := &watch{queue: queue.New[*attunev1.WatchProbesResponse](watchQueue)}
	a := newAsker(p.session, fmt.Sprintf("%s watch %d", OwnName, p.watchers.Add(1)), w.push)
	defer p.session.TunletGone(a.name, "nobody watches any more", true)
	if len(r.GetPoints()) > 0 {
		if err := check(r.GetPoints()); err != nil {
			return err
		}
		a.ask(r.GetPoints(), processes, r.GetFollow())
	} else if err := p.watchLasting(a, processes); err != nil {
		return err
	}
	return w.serve(stream, func() bool { return len(a.chosen(nil)) == 0 })
}

// watchLasting asks for what AddProbes has put into the processes.
func (p *probeService) watchLasting(a *asker, processes []*attunev1.Process) error {
	some := false
	for _, process := range processes {
		for _, w := range p.lasting.chosen([]int32{process.GetIdentity().GetPid()}) {
			some = true
			a.ask([]*attunev1.MeasurePoint{w.spec}, []*attunev1.Process{process}, w.follow)
		}
	}
	if !some {
		return status.Error(codes.FailedPrecondition, "no measure point was added to these processes: say what to watch")
	}
	return nil
}

// watch is one client that watches.
type watch struct {
	queue *queue.Queue[*attunev1.WatchProbesResponse]
	told  uint64 // how many lost messages it was told of; serve's own
}

// push queues a message unless the client does not keep up.
func (w *watch) push(m *attunev1.WatchProbesResponse) {
	w.queue.Offer(m)
}

// serve sends what is queued until the client leaves or nothing is left to watch.
func (w *watch) serve(stream grpc.ServerStreamingServer[attunev1.WatchProbesResponse], done func() bool) error {
	for {
		m, err := w.queue.Take(stream.Context())
		if err != nil {
			return nil // it has left
		}
		if err := w.send(stream, m); err != nil {
			return err
		}
		if w.queue.Len() == 0 && done() {
			return nil
		}
	}
}

func (w *watch) send(stream grpc.ServerStreamingServer[attunev1.WatchProbesResponse], m *attunev1.WatchProbesResponse) error {
	if lost := w.queue.Dropped() - w.told; lost > 0 {
		w.told += lost
		if err := stream.Send(&attunev1.WatchProbesResponse{Event: &attunev1.WatchProbesResponse_Lost{Lost: lost}}); err != nil {
			return err
		}
	}
	return stream.Send(m)
}
