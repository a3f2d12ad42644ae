// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/attune-hpc/attune/internal/authn"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// sessions answers two requests, one of them badly.
type sessions struct {
	attunev1.UnimplementedSessionServiceServer
}

func (sessions) StartSession(_ context.Context, r *attunev1.StartSessionRequest) (*attunev1.StartSessionResponse, error) {
	if r.GetRegistration().GetUser() != "" {
		return nil, status.Error(codes.PermissionDenied, "not yours")
	}
	return &attunev1.StartSessionResponse{Registration: &attunev1.Registration{Id: "r1"}}, nil
}

// manager asks for two things and hears two.
type manager struct {
	attunev1.UnimplementedManagementServiceServer
}

func (manager) Manage(stream attunev1.ManagementService_ManageServer) error {
	if _, err := stream.Recv(); err != nil {
		return err
	}
	point := func(index uint32, id string) *attunev1.PointWant {
		return &attunev1.PointWant{Index: index, Point: &attunev1.MeasurePoint{Id: id}}
	}
	want := func(period int64, points ...*attunev1.PointWant) *attunev1.ManageResponse {
		return &attunev1.ManageResponse{Request: &attunev1.ManageResponse_Want{Want: &attunev1.Want{PeriodNanos: period, Points: points}}}
	}
	for _, request := range []*attunev1.ManageResponse{
		{RequestId: "1", Request: &attunev1.ManageResponse_Renew{Renew: &attunev1.RenewLease{}}},
		want(1), want(1, point(7, "stays"), point(8, "goes")), want(2, point(7, "stays"), point(8, "goes")), want(2, point(7, "stays")),
		{RequestId: "2", Request: &attunev1.ManageResponse_Undo{Undo: &attunev1.UndoChanges{ChangeIds: []string{"c1"}}}},
	} {
		if err := stream.Send(request); err != nil {
			return err
		}
	}
	for range 2 {
		if _, err := stream.Recv(); err != nil {
			return err
		}
	}
	return nil
}

// mustServe serves with an audit log and returns a connection to it.
func mustServe(t *testing.T, l *Log, creds grpc.ServerOption) *grpc.ClientConn {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(creds, grpc.UnaryInterceptor(l.Unary()), grpc.StreamInterceptor(l.Stream()))
	attunev1.RegisterSessionServiceServer(server, sessions{})
	attunev1.RegisterManagementServiceServer(server, manager{})
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() { server.Stop(); <-done })
	conn, err := grpc.NewClient("unix:"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func TestUnary(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := mustOpen(t, Options{Path: path})
	conn := mustServe(t, l, grpc.Creds(authn.New(authn.Options{})))
	client := attunev1.NewSessionServiceClient(conn)
	ask := func(r *attunev1.Registration) {
		_, _ = client.StartSession(t.Context(), &attunev1.StartSessionRequest{Registration: r})
	}
	ask(&attunev1.Registration{Executable: "solver"})
	ask(&attunev1.Registration{Executable: "solver", User: "alice"})
	ask(&attunev1.Registration{Executable: strings.Repeat("x", maxMessage)})

	mustSync(t, l) // an answer waits for its line, but not for long
	entries := mustRead(t, path)[1:]
	if len(entries) != 6 {
		t.Fatalf("%d lines: %+v", len(entries), entries)
	}
	for n, want := range []struct {
		event   Event
		message string
		code    string
		err     string
	}{
		{Asked, `{"registration":{"executable":"solver"}}`, "", ""},
		{Answered, `{"registration":{"id":"r1"}}`, "OK", ""},
		{Asked, `{"registration":{"executable":"solver","user":"alice"}}`, "", ""},
		{Answered, ``, "PermissionDenied", "not yours"},
		{Asked, ``, "", ""},
		{Answered, `{"registration":{"id":"r1"}}`, "OK", ""},
	} {
		e := entries[n]
		if e.Event != want.event || string(e.Message) != want.message || e.Code != want.code || e.Error != want.err {
			t.Errorf("line %d: %+v, want %+v", n, e, want)
		}
		if e.Call != entries[n&^1].Number || !strings.HasSuffix(e.What, "/StartSession") {
			t.Errorf("line %d: %+v", n, e)
		}
	}
	first := entries[0]
	if who := first.Who; who == nil || *who.UID != uint32(os.Geteuid()) || !strings.HasPrefix(first.From, "pid ") {
		t.Errorf("%+v: who asked?", first)
	}
	if entries[4].Bytes < maxMessage {
		t.Errorf("%+v: a long message has its size", entries[4])
	}
}

func TestStream(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := mustOpen(t, Options{Path: path})
	conn := mustServe(t, l, grpc.Creds(authn.New(authn.Options{})))
	stream, err := attunev1.NewManagementServiceClient(conn).Manage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []*attunev1.ManageRequest{
		{Message: &attunev1.ManageRequest_Hello{Hello: &attunev1.ControllerHello{Host: "n1"}}},
		{Message: &attunev1.ManageRequest_Status{Status: &attunev1.ControllerStatus{}}},
		{Message: &attunev1.ManageRequest_Result{Result: &attunev1.ActionResult{ChangeId: "c1"}}},
	} {
		if err := stream.Send(m); err != nil {
			t.Fatal(err)
		}
	}
	for err == nil {
		_, err = stream.Recv()
	}
	mustSync(t, l)
	want := []Event{Started, Asked, Received, Sent, Sent, Sent, Received, Answered}
	entries := mustRead(t, path)
	var got []Event
	for _, e := range entries {
		got = append(got, e.Event)
	}
	if len(got) != len(want) {
		t.Fatalf("%v, want %v", got, want)
	}
	for n, text := range map[int]string{2: "n1", 3: `"goes"`, 4: `{"want":{"points":[{"index":8}]}}`, 5: "c1", 6: "c1"} {
		if e := entries[n]; !strings.Contains(string(e.Message), text) || e.Call != entries[1].Number {
			t.Errorf("line %d: %+v", n, e)
		}
	}
}

// TestNobody: a server whose credentials know nobody serves nobody.
func TestNobody(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := mustOpen(t, Options{Path: path})
	conn := mustServe(t, l, grpc.Creds(insecure.NewCredentials()))
	_, err := attunev1.NewSessionServiceClient(conn).StartSession(t.Context(), &attunev1.StartSessionRequest{})
	if status.Code(err) != codes.Unauthenticated {
		t.Errorf("request: %v", err)
	}
	stream, err := attunev1.NewManagementServiceClient(conn).Manage(t.Context())
	if err == nil {
		_, err = stream.Recv()
	}
	if status.Code(err) != codes.Unauthenticated {
		t.Errorf("stream: %v", err)
	}
	mustSync(t, l)
	if entries := mustRead(t, path); len(entries) != 3 || entries[1].Event != Refused || entries[2].Event != Refused {
		t.Errorf("%+v", entries)
	}
}
