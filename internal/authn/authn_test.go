// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/attune-hpc/attune/internal/pki"
	"github.com/attune-hpc/attune/internal/testing/leaktest"
	"github.com/attune-hpc/attune/internal/testing/pkitest"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// service is a server that notes who asked.
type service struct {
	address string
	asked   chan *attunev1.Principal
	refused chan error
}

// mustServe serves gRPC on a socket of the network until the test ends.
func mustServe(t *testing.T, network string, o Options) *service {
	t.Helper()
	address := "127.0.0.1:0"
	if network == "unix" {
		address = filepath.Join(t.TempDir(), "s")
	}
	listener, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	s := &service{
		address: listener.Addr().String(),
		asked:   make(chan *attunev1.Principal, 8), refused: make(chan error, 8),
	}
	if network == "unix" {
		s.address = "unix:" + s.address
	}
	o.Refused = func(_ net.Addr, err error) { s.refused <- err }
	server := grpc.NewServer(grpc.Creds(New(o)), grpc.UnaryInterceptor(s.note))
	healthv1.RegisterHealthServer(server, health.NewServer())
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *service) note(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	principal, err := PrincipalFrom(ctx)
	if err != nil {
		return nil, err
	}
	s.asked <- principal
	return handler(ctx, request)
}

// call asks the service once, and returns who it is.
func call(t *testing.T, s *service, o Options) (*attunev1.Principal, error) {
	t.Helper()
	conn, err := grpc.NewClient(s.address, grpc.WithTransportCredentials(New(o)))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var server peer.Peer
	_, err = healthv1.NewHealthClient(conn).Check(t.Context(), &healthv1.HealthCheckRequest{}, grpc.Peer(&server))
	if err != nil {
		return nil, err
	}
	return PrincipalFrom(peer.NewContext(t.Context(), &server))
}

func TestUnix(t *testing.T) {
	s := mustServe(t, "unix", Options{Admit: OwnAndRoot})
	server, err := call(t, s, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for side, got := range map[string]*attunev1.Principal{"client": <-s.asked, "server": server} {
		if diff := cmp.Diff(Self(), got, protocmp.Transform()); diff != "" {
			t.Errorf("%s: %s", side, diff)
		}
	}
}

func TestTCP(t *testing.T) {
	site := pkitest.New(t)
	uid := uint32(4711)
	tests := []struct {
		name     string
		identity *pki.Identity
		want     *attunev1.Principal
	}{
		{"user", site.User(t, "alice", 1001), &attunev1.Principal{Name: "alice", Uid: 1001, Role: attunev1.Role_ROLE_USER}},
		{"node", site.Node(t, "n1"), &attunev1.Principal{Name: "n1", Uid: pki.NoUID, Role: attunev1.Role_ROLE_NODE}},
		{"admin", pkitest.Open(t, site.Issue(t, pki.Request{Name: "bob", UID: &uid, Role: attunev1.Role_ROLE_ADMIN})),
			&attunev1.Principal{Name: "bob", Uid: uid, Role: attunev1.Role_ROLE_ADMIN}},
	}
	s := mustServe(t, "tcp", Options{Identity: site.Node(t, "server")})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			server, err := call(t, s, Options{Identity: tt.identity})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, <-s.asked, protocmp.Transform()); diff != "" {
				t.Error(diff)
			}
			if server.GetName() != "server" || server.GetRole() != attunev1.Role_ROLE_NODE {
				t.Errorf("the server is %v", server)
			}
		})
	}
}

func TestNotAdmitted(t *testing.T) {
	nobody := func(*attunev1.Principal) error { return ErrNotAdmitted }
	t.Run("client", func(t *testing.T) {
		s := mustServe(t, "unix", Options{Admit: nobody})
		if _, err := call(t, s, Options{}); status.Code(err) != codes.Unavailable {
			t.Errorf("call: %v", err)
		}
		if err := <-s.refused; !errors.Is(err, ErrNotAdmitted) {
			t.Errorf("refused: %v", err)
		}
	})
	t.Run("server", func(t *testing.T) {
		s := mustServe(t, "unix", Options{})
		if _, err := call(t, s, Options{Admit: nobody}); status.Code(err) != codes.Unavailable {
			t.Errorf("call: %v", err)
		}
	})
}

func TestNeitherUnixNorTCP(t *testing.T) {
	client, server := net.Pipe()
	defer client.Close()
	if _, _, err := New(Options{}).ServerHandshake(server); !errors.Is(err, ErrNotKnown) {
		t.Errorf("a pipe is served: %v", err)
	}
}

func TestOwnAndRoot(t *testing.T) {
	own := uint32(os.Geteuid())
	for name, tt := range map[string]struct {
		uid uint32
		ok  bool
	}{
		"own": {own, true}, "root": {0, true}, "another": {own + 1, false}, "none": {pki.NoUID, false},
	} {
		if err := OwnAndRoot(&attunev1.Principal{Uid: tt.uid}); (err == nil) != tt.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestReaches(t *testing.T) {
	tests := []struct {
		name string
		role attunev1.Role
		own  uint32
		uid  uint32
		want bool
	}{
		{"own", attunev1.Role_ROLE_USER, 1000, 1000, true},
		{"another's", attunev1.Role_ROLE_USER, 1000, 1001, false},
		{"root's", attunev1.Role_ROLE_USER, 1000, 0, false},
		{"nobody's", attunev1.Role_ROLE_USER, pki.NoUID, pki.NoUID, false},
		{"admin", attunev1.Role_ROLE_ADMIN, 1000, 1001, true},
		{"node", attunev1.Role_ROLE_NODE, pki.NoUID, 1001, true},
		{"no role", attunev1.Role_ROLE_UNSPECIFIED, 1000, 1000, false},
	}
	for _, tt := range tests {
		if got := Reaches(&attunev1.Principal{Role: tt.role, Uid: tt.own}, tt.uid); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
	if Reaches(nil, 0) {
		t.Error("nobody reaches root's")
	}
}
