// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/controller/actuate/hidden"
	"github.com/attune-hpc/attune/controller/member"
	"github.com/attune-hpc/attune/dmlib"
	"github.com/attune-hpc/attune/internal/testing/longgate"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
	"github.com/attune-hpc/attune/proto/attune/series"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// analyzer is the other end of the channels: tests read what the controller
// says and send requests, which say how many messages were taken.
type analyzer struct {
	attunev1.UnimplementedEventServiceServer
	attunev1.UnimplementedManagementServiceServer
	events   chan *attunev1.PublishRequest
	answers  chan *attunev1.ManageRequest
	requests chan *attunev1.ManageResponse
	taken    atomic.Uint64 // of the connection
	dying    atomic.Bool   // what comes is not taken, but goes to untaken
	untaken  chan *attunev1.PublishRequest
}

func (a *analyzer) Publish(stream attunev1.EventService_PublishServer) error {
	for {
		message, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return stream.SendAndClose(&attunev1.PublishResponse{})
		}
		if err != nil {
			return err
		}
		if message.GetHello() != nil {
			a.taken.Store(0)
			a.dying.Store(false)
		}
		to, took := a.events, uint64(1)
		if a.dying.Load() {
			to, took = a.untaken, 0
		}
		messages := message.GetNews().GetNews()
		if len(messages) == 0 {
			messages = []*attunev1.PublishRequest{message}
		}
		for _, m := range messages {
			select {
			case to <- m:
			case <-stream.Context().Done():
				return nil
			}
		}
		a.taken.Add(took)
	}
}

func (a *analyzer) Manage(stream attunev1.ManagementService_ManageServer) error {
	go func() {
		for {
			select {
			case request := <-a.requests:
				request = proto.CloneOf(request)
				request.EventsTaken = proto.Uint64(a.taken.Load())
				_ = stream.Send(request) // the test waits for the answer
			case <-stream.Context().Done():
				return
			}
		}
	}()
	for {
		answer, err := stream.Recv()
		if err != nil {
			return nil
		}
		a.answers <- answer
	}
}

// bench is a controller with its analyzer.
type bench struct {
	want  attunev1.Want           // all that the analyzer wants, as it was sent last
	added uint32                  // the point that was added last
	early []*attunev1.PointStatus // of that point, before it was answered
	*analyzer
	controller *Controller
	state      string
	address    string
	hide       func() // takes the analyzer away; show brings it back
}

// start starts a controller whose measure points may take whatever they take:
// what is switched off counts nothing. Its changes need no Analyzer that renews their
// leases: the machine may be busy for longer. Its job is its own, also where the same
// test runs beside it in another process.
func start(t *testing.T, options ...func(*Config)) *bench {
	t.Helper()
	dir := t.TempDir()
	helper, err := dmlib.LoadProbe()
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{state: filepath.Join(dir, "state"), analyzer: &analyzer{
		events: make(chan *attunev1.PublishRequest, 10000), answers: make(chan *attunev1.ManageRequest, 10000),
		requests: make(chan *attunev1.ManageResponse), untaken: make(chan *attunev1.PublishRequest, 10000),
	}}
	b.address = filepath.Join(dir, "a.sock")
	b.show(t)
	config := Config{
		AnalyzerAddress: "unix:" + b.address, GatePath: filepath.Join(dir, "gate", "g.sock"),
		LibraryPath: longgate.Install(t, dir), GateTimeout: longgate.Limit, StateDir: b.state, JobID: fmt.Sprintf("test-%s-%d", t.Name(), os.Getpid()),
		Hidden: &hidden.Prober{Helper: helper}, Budget: 1, Lease: time.Hour,
	}
	for _, option := range options {
		option(&config)
	}
	b.controller, err = New(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.controller.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.hide() })
	return b
}

// show serves the analyzer, at the same address each time.
func (b *bench) show(t *testing.T) {
	t.Helper()
	listener, err := net.Listen("unix", b.address)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	attunev1.RegisterEventServiceServer(server, b.analyzer)
	attunev1.RegisterManagementServiceServer(server, b.analyzer)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	b.hide = sync.OnceFunc(func() {
		server.Stop()
		<-served
	})
}

func (b *bench) stop(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience.Limit) // also in a test's clean-up
	defer cancel()
	if err := b.controller.Stop(ctx); err != nil {
		t.Errorf("stop: %v", err)
	}
}

// event waits for the first message that pick accepts.
func event[T any](t *testing.T, b *bench, what string, pick func(*attunev1.PublishRequest) (T, bool)) T {
	t.Helper()
	got, ok := eventWithin(b, patience.Limit, pick)
	if !ok {
		t.Fatalf("waited in vain for: %s", what)
	}
	return got
}

// eventWithin is event for what may not come; false if it has not.
func eventWithin[T any](b *bench, limit time.Duration, pick func(*attunev1.PublishRequest) (T, bool)) (got T, ok bool) {
	for deadline := time.After(limit); ; {
		select {
		case message := <-b.events:
			if got, ok = pick(message); ok {
				return got, true
			}
		case <-deadline:
			return got, false
		}
	}
}

// ask sends a request and returns its answers.
func (b *bench) ask(t *testing.T, request *attunev1.ManageResponse) (results []*attunev1.ActionResult) {
	t.Helper()
	b.requests <- request
	for deadline := time.After(patience.Limit); ; {
		select {
		case answer := <-b.answers:
			if r := answer.GetResult(); r.GetRequestId() == request.GetRequestId() && r != nil {
				results = append(results, r)
			}
			if answer.GetDone().GetRequestId() == request.GetRequestId() {
				return results
			}
			if s := answer.GetPoint(); s != nil && s.GetPoint() == b.added {
				b.early = append(b.early, s)
			}
		case <-deadline:
			t.Fatalf("waited in vain for the answer to %s", request.GetRequestId())
		}
	}
}

// withDMLib waits until a process is in control by DMLib.
func (b *bench) withDMLib(t *testing.T, pid int) *attunev1.Process {
	t.Helper()
	return event(t, b, "process with DMLib", hasDMLib(pid))
}

// hasDMLib picks the event that tells of DMLib in a process.
func hasDMLib(pid int) func(*attunev1.PublishRequest) (*attunev1.Process, bool) {
	return func(m *attunev1.PublishRequest) (*attunev1.Process, bool) {
		p, way := aboutDMLib(m)
		return p, way.GetAvailable() && int(p.GetIdentity().GetPid()) == pid
	}
}

// aboutDMLib is what a message says of DMLib in a process; nil: nothing. The very first
// about a process may say it, where the rest was slow.
func aboutDMLib(m *attunev1.PublishRequest) (*attunev1.Process, *attunev1.Mechanism) {
	p := cmp.Or(m.GetProcessChanged(), m.GetProcessStarted())
	for _, way := range p.GetMechanisms() {
		if way.GetName() == member.MechanismDMLib {
			return p, way
		}
	}
	return p, nil
}

func (b *bench) apply(t *testing.T, changes ...*attunev1.Change) []*attunev1.ActionResult {
	t.Helper()
	return b.ask(t, &attunev1.ManageResponse{RequestId: "apply", Request: &attunev1.ManageResponse_Apply{
		Apply: &attunev1.ApplyChanges{Changes: changes},
	}})
}

func topPad(id string, process uint64, value int64) *attunev1.Change {
	return &attunev1.Change{Id: id, Knob: "glibc.malloc.mmap_threshold", Process: process, Action: &attunev1.Action{
		Kind: &attunev1.Action_Setting{Setting: &attunev1.NamedSetting{
			Name: "glibc.malloc.mmap_threshold", Value: &attunev1.Value{Kind: &attunev1.Value_Integer{Integer: value}},
		}},
	}}
}

func knob(id string, process uint64, symbol string) *attunev1.Change {
	return &attunev1.Change{Id: id, Knob: "knob", Process: process, Action: &attunev1.Action{
		Kind: &attunev1.Action_SetVariable{SetVariable: &attunev1.SetVariable{
			Object: "storm", Symbol: symbol, Size: 4, Value: &attunev1.Value{Kind: &attunev1.Value_Integer{Integer: 2}},
		}},
	}}
}

// One program, one controller: what is asked for is measured, a change is made
// at a hook with its old and new value, undone, and the end is told.
func TestMeasureChangeUndo(t *testing.T) {
	program := targets.Build(t, "testdata/storm.c")
	b := start(t)
	target := targets.Start(t, program, b.controller.Environment()...)
	process := b.withDMLib(t, target.PID)

	b.sampleEvery(t, 20*time.Millisecond)
	b.addPoint(t, 7, &attunev1.MeasurePoint{Id: "large", MinValue: 1 << 17, Target: &attunev1.MeasurePoint_Hook{Hook: "malloc"}})
	// The program goes on while it is read: the sum may be some hits off, many where the reader has to
	// wait for a CPU, which the next makes up for.
	const enough = 10_000
	var count, sum uint64
	event(t, b, "aggregates", func(m *attunev1.PublishRequest) (*attunev1.Aggregate, bool) {
		for _, a := range m.GetAggregates().GetAggregates() {
			if a.GetPoint() != 7 || a.GetProcess() != process.GetHandle() || a.GetCount() == 0 {
				continue
			}
			known := a.GetMax() != 0 // not of hits on the border of two intervals
			if known && (a.GetMin() != 1<<20 || a.GetMax() != 1<<20) || a.GetSum()%(1<<20) != 0 {
				t.Errorf("aggregate %v: all blocks have 1 MiB", a)
			}
			count, sum = count+a.GetCount(), sum+a.GetSum()
		}
		off := int64(sum>>20) - int64(count)
		return nil, count >= enough && max(off, -off) <= int64(count/100)
	})
	faults := event(t, b, "sample", func(m *attunev1.PublishRequest) (float64, bool) {
		for _, s := range m.GetSamples().GetSamples() {
			if s.GetProcess() == process.GetHandle() {
				return series.Signal(s, series.MinorFaults)
			}
		}
		return 0, false
	})
	if faults == 0 {
		t.Error("no minor faults sampled in an allocation storm")
	}

	results := b.apply(t, topPad("c1", process.GetHandle(), 32<<20))
	if len(results) != 1 || results[0].GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED {
		t.Fatalf("apply: %v", results)
	}
	if r := results[0]; r.GetNewValue().GetInteger() != 32<<20 || !strings.Contains(r.GetSafePoint(), "malloc hook") && !strings.Contains(r.GetSafePoint(), "free hook") {
		t.Errorf("answer: %v", r)
	}
	undone := b.ask(t, &attunev1.ManageResponse{RequestId: "undo", Request: &attunev1.ManageResponse_Undo{
		Undo: &attunev1.UndoChanges{ChangeIds: []string{"c1"}},
	}})
	if len(undone) != 1 || undone[0].GetOutcome() != attunev1.Outcome_OUTCOME_UNDONE {
		t.Errorf("undo: %v", undone)
	}
	if err := target.End(t); err == nil || err.Error() != "exit status 3" {
		t.Errorf("target ended with %v, want its own 3", err)
	}
	event(t, b, "end of the process", func(m *attunev1.PublishRequest) (bool, bool) {
		return true, m.GetProcessEnded().GetProcess() == process.GetHandle()
	})
	b.stop(t)
}

func TestChangesAreAllOrNothing(t *testing.T) {
	program := targets.Build(t, "testdata/storm.c")
	b := start(t)
	target := targets.Start(t, program, b.controller.Environment()...)
	process := b.withDMLib(t, target.PID)
	results := b.apply(t, knob("c1", process.GetHandle(), "knob"), knob("c2", process.GetHandle(), "nothing"), knob("c3", process.GetHandle(), "knob"))
	for i, r := range results {
		if r.GetOutcome() != attunev1.Outcome_OUTCOME_REFUSED || r.GetReason() == "" || r.GetUntried() != (i != 1) {
			t.Errorf("change %d: %v", i, r)
		}
	}
	if line := target.Ask(t, ""); !strings.HasSuffix(line, " 1") {
		t.Errorf("program says %q, want its knob at 1", line)
	}
	b.stop(t)
}

// What is in force is undone when the controller leaves, and the program runs
// on as if nothing had been there.
func TestStopGivesBack(t *testing.T) {
	program := targets.Build(t, "testdata/storm.c")
	b := start(t)
	target := targets.Start(t, program, b.controller.Environment()...)
	process := b.withDMLib(t, target.PID)
	if r := b.apply(t, knob("c1", process.GetHandle(), "knob")); r[0].GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED {
		t.Fatal(r)
	}
	if line := target.Ask(t, ""); !strings.HasSuffix(line, " 2") {
		t.Fatalf("program says %q, want its knob at 2", line)
	}
	b.stop(t)
	if line := target.Ask(t, ""); !strings.HasSuffix(line, " 1") {
		t.Errorf("program says %q after the controller left, want its knob at 1", line)
	}
	if left, _ := filepath.Glob(filepath.Join(b.state, "*.journal")); len(left) != 0 {
		t.Errorf("journal left behind: %v", left)
	}
	if err := target.End(t); err == nil || err.Error() != "exit status 3" {
		t.Errorf("target ended with %v, want its own 3", err)
	}
}
