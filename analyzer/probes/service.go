// SPDX-License-Identifier: Apache-2.0

package probes

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/analyzer/fold"
	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/analyzer/session"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// answerPatience is how long AddProbes waits for processes to come to a safe point.
const answerPatience = 5 * time.Second

// Probes are the measure points that people have in one session.
type Probes struct {
	session  *session.Session
	account  *fold.Account
	lasting  *wishes
	watchers atomic.Uint64 // so far
}

// New returns the points of a session, none as yet. The account is one of its sinks.
func New(s *session.Session, account *fold.Account) *Probes {
	return &Probes{session: s, account: account, lasting: &wishes{account: account, name: report.OwnerName + " probe"}}
}

// Lasting returns how many measure points people have added and not removed.
func (p *Probes) Lasting() int { return int(p.lasting.left.Load()) }

// For serves somebody, who reaches the processes of some users; others are not there
// for them.
func (p *Probes) For(reaches func(uid uint32) bool) attunev1.ProbeServiceServer {
	return service{Probes: p, reaches: reaches}
}

// service serves one person.
type service struct {
	attunev1.UnimplementedProbeServiceServer
	*Probes

	reaches func(uid uint32) bool
}

// AddProbes implements the service.
func (s service) AddProbes(ctx context.Context, r *attunev1.AddProbesRequest) (*attunev1.AddProbesResponse, error) {
	if err := check(r.GetPoints()); err != nil {
		return nil, err
	}
	err := s.session.Ask(ctx, s.lasting.name, s.lasting, func() (*attunev1.Want, error) {
		images, err := s.images(r.GetHost(), r.GetPids())
		if err != nil {
			return nil, err
		}
		want := s.lasting.want()
		want.Points = append(want.Points, s.lasting.missing(r.GetPoints(), images, r.GetFollow())...)
		return want, nil
	})
	if err != nil {
		return nil, err
	}
	ids := make(map[string]bool)
	for _, point := range r.GetPoints() {
		ids[point.GetId()] = true
	}
	asked := func() []*wish {
		return slices.DeleteFunc(s.chosen(r.GetHost(), r.GetPids()), func(w *wish) bool { return !ids[w.text] })
	}
	answered, cancel := context.WithTimeout(ctx, answerPatience)
	defer cancel()
	_ = s.session.Await(answered, func() bool { // what was not answered has no state
		return !slices.ContainsFunc(asked(), func(w *wish) bool { return w.status == nil })
	})
	return session.View(ctx, s.session, func(time.Duration) *attunev1.AddProbesResponse {
		return &attunev1.AddProbesResponse{Probes: s.probes(asked())}
	})
}

// missing returns what is to be asked for to have points in processes, but for what
// is there already. What was refused is asked for again.
func (ws *wishes) missing(points []*attunev1.MeasurePoint, images []fold.Image, follow bool) (out []*attunev1.PointWant) {
	for _, spec := range points {
		for _, image := range images {
			if slices.ContainsFunc(ws.list, func(w *wish) bool {
				return w.index != 0 && w.text == spec.GetId() && w.image.Handle == image.Handle
			}) {
				continue
			}
			one := &attunev1.PointWant{Point: proto.CloneOf(spec), Follow: follow}
			one.Point.Processes = []uint64{image.Handle}
			out = append(out, one)
		}
	}
	return out
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

// images finds the images that run under the ids, on a host, or on the only one that
// has them.
func (s service) images(host string, pids []int32) (out []fold.Image, err error) {
	if len(pids) == 0 {
		return nil, status.Error(codes.InvalidArgument, "no process")
	}
	live := s.running(host)
	for _, pid := range pids {
		at := slices.IndexFunc(live, func(l fold.Image) bool { return l.PID == int(pid) })
		if at < 0 {
			return nil, status.Error(codes.NotFound, fmt.Sprintf("process %d is not in this session", pid))
		}
		if other := slices.IndexFunc(live, func(l fold.Image) bool { return l.PID == int(pid) && l.Host != live[at].Host }); other >= 0 {
			return nil, status.Error(codes.FailedPrecondition, fmt.Sprintf(
				"there is a process %d on %s and on %s: say which host", pid, live[at].Host, live[other].Host))
		}
		out = append(out, live[at])
	}
	return out, nil
}

// running returns the images that run on a host, on all if it is empty.
func (s service) running(host string) []fold.Image {
	return slices.DeleteFunc(s.account.Running(), func(i fold.Image) bool { return !s.sees(i, host) })
}

func (s service) sees(i fold.Image, host string) bool {
	return s.reaches(i.User) && (host == "" || i.Host == host)
}

// chosen returns the lasting wishes for processes, all if none is given.
func (s service) chosen(host string, pids []int32) []*wish {
	return slices.DeleteFunc(s.lasting.chosen(pids), func(w *wish) bool { return !s.sees(w.image, host) })
}

// ListProbes implements the service.
func (s service) ListProbes(ctx context.Context, r *attunev1.ListProbesRequest) (*attunev1.ListProbesResponse, error) {
	return session.View(ctx, s.session, func(time.Duration) *attunev1.ListProbesResponse {
		out := &attunev1.ListProbesResponse{}
		for _, image := range s.running(r.GetHost()) {
			out.Pids = append(out.Pids, int32(image.PID))
		}
		for _, probe := range s.account.Probes() {
			if !slices.Contains(out.GetPids(), probe.GetPid()) || len(r.GetPids()) > 0 && !slices.Contains(r.GetPids(), probe.GetPid()) {
				continue
			}
			if probe.GetOwner() != s.lasting.name {
				probe.Number = 0
			}
			out.Probes = append(out.Probes, probe)
		}
		return out
	})
}

// RemoveProbes implements the service.
func (s service) RemoveProbes(ctx context.Context, r *attunev1.RemoveProbesRequest) (*attunev1.RemoveProbesResponse, error) {
	answer := make(chan *attunev1.RemoveProbesResponse, 1)
	err := s.session.Ask(ctx, s.lasting.name, s.lasting, func() (*attunev1.Want, error) {
		gone := slices.DeleteFunc(s.chosen(r.GetHost(), r.GetPids()), func(w *wish) bool {
			return len(r.GetProbes()) > 0 && !slices.Contains(r.GetProbes(), w.text) &&
				!slices.Contains(r.GetProbes(), strconv.FormatUint(uint64(w.number), 10))
		})
		answer <- &attunev1.RemoveProbesResponse{Probes: s.probes(gone)}
		s.lasting.drop(gone)
		return s.lasting.want(), nil
	})
	if err != nil {
		return nil, err
	}
	return <-answer, nil
}

// probes tells of wishes as they stand.
func (p *Probes) probes(of []*wish) []*attunev1.Probe {
	out := make([]*attunev1.Probe, 0, len(of))
	for _, w := range of {
		out = append(out, w.probe(report.OwnerName))
	}
	return out
}
