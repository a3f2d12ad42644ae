// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"bytes"
	"context"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"

	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/internal/rundir"
	"github.com/attune-hpc/attune/local"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// session is one of the user's, with the points that were added.
type session struct {
	attunev1.UnimplementedProbeServiceServer

	pids    []int32
	points  []*attunev1.Probe
	watched [][]int32
}

func (s *session) ListProbes(_ context.Context, r *attunev1.ListProbesRequest) (*attunev1.ListProbesResponse, error) {
	out := &attunev1.ListProbesResponse{Pids: s.pids}
	for _, probe := range s.points {
		if slices.Contains(r.GetPids(), probe.GetPid()) {
			out.Probes = append(out.Probes, probe)
		}
	}
	return out, nil
}

// RemoveProbes takes none of the processes for all of them, as sessions do.
func (s *session) RemoveProbes(_ context.Context, r *attunev1.RemoveProbesRequest) (*attunev1.RemoveProbesResponse, error) {
	var gone []*attunev1.Probe
	s.points = slices.DeleteFunc(s.points, func(probe *attunev1.Probe) bool {
		named := len(r.GetPids()) == 0 || slices.Contains(r.GetPids(), probe.GetPid())
		if named {
			gone = append(gone, probe)
		}
		return named
	})
	return &attunev1.RemoveProbesResponse{Probes: gone}, nil
}

func (s *session) WatchProbes(r *attunev1.WatchProbesRequest, _ grpc.ServerStreamingServer[attunev1.WatchProbesResponse]) error {
	s.watched = append(s.watched, r.GetPids())
	return nil
}

// start serves a session of processes, with a point added in each of some.
func start(t *testing.T, pids, measured []int32) *session {
	t.Helper()
	dir, err := rundir.Create(rundir.Current())
	if err != nil {
		t.Fatal(err)
	}
	s := &session{pids: pids}
	for i, pid := range measured {
		s.points = append(s.points, &attunev1.Probe{Pid: pid, Number: uint32(i + 1), Text: "libc.so.6:malloc"})
	}
	listener, err := net.Listen("unix", dir.Socket(local.Socket))
	if err != nil {
		t.Fatal(err)
	}
	server, served := grpc.NewServer(), make(chan error, 1)
	attunev1.RegisterProbeServiceServer(server, s)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
		if err := dir.Remove(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// ownRunDir gives the test a directory of its own for sessions.
func ownRunDir(t *testing.T) {
	t.Helper()
	base, err := os.MkdirTemp("", "a") //nolint:usetesting // that of the test is too long for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	t.Setenv("XDG_RUNTIME_DIR", base)
}

// TestSessionOfManyPoints: it is asked though its answer is larger than gRPC takes by itself.
func TestSessionOfManyPoints(t *testing.T) {
	ownRunDir(t)
	s := start(t, []int32{1}, []int32{1})
	s.points[0].Text = strings.Repeat("a", 5<<20)
	held := holders(t.Context(), []int{1})
	t.Cleanup(func() { closeHolders(held) })
	if len(held) != 1 {
		t.Errorf("%d sessions hold the process, want 1", len(held))
	}
}

func (s *session) left() (pids []int32) {
	for _, probe := range s.points {
		pids = append(pids, probe.GetPid())
	}
	return pids
}

// TestProcessOfTwoSessions: each is asked for what it has itself in the processes that are named, and
// for nothing in others.
func TestProcessOfTwoSessions(t *testing.T) {
	ownRunDir(t)
	const first, shared, second = 1<<30 + 1, 1<<30 + 2, 1<<30 + 3 // no process has such an id
	a := start(t, []int32{first, shared}, []int32{first, shared})
	b := start(t, []int32{shared, second}, []int32{second})
	c := start(t, []int32{shared, second}, []int32{shared, second})
	env := &cli.Env{Stdout: &bytes.Buffer{}, Stderr: &bytes.Buffer{}}

	if err := watchProbes(t.Context(), env, watchFlags{interval: time.Second}, []int{shared}, nil); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([][][]int32{{{shared}}, nil, {{shared}}}, [][][]int32{a.watched, b.watched, c.watched}); diff != "" {
		t.Errorf("asked of the sessions to watch (-want +got):\n%s", diff)
	}
	if err := removeProbes(t.Context(), env, probePlace{}, []int{shared}, nil, false); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([][]int32{{first}, {second}, {second}}, [][]int32{a.left(), b.left(), c.left()}); diff != "" {
		t.Errorf("left in the sessions (-want +got):\n%s", diff)
	}
	if err := removeProbes(t.Context(), env, probePlace{}, []int{shared}, nil, false); err == nil {
		t.Error("what is gone was removed once more")
	}
}
