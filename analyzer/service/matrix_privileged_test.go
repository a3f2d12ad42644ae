// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package service

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/analyzer/channel"
	"github.com/attune-hpc/attune/internal/authn"
	"github.com/attune-hpc/attune/internal/pki"
	"github.com/attune-hpc/attune/internal/registry"
	"github.com/attune-hpc/attune/internal/testing/asuser"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/pkitest"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const carolUID = 4713

// person is somebody in one of the ways in which they can come. The rule of all that
// follows: everybody reaches what is their own, and who is all everything. An admin
// is one by certificate only: the kernel knows users and root.
type person struct {
	name string
	uid  uint32
	all  bool
	conn *grpc.ClientConn
}

func (p person) reaches(uid uint32) bool { return p.all || p.uid == uid }

// sockets serves an Analyzer at a Unix socket too, and returns connections as users.
func (p *place) sockets(a *running) func(uid uint32) *grpc.ClientConn {
	dir, err := os.MkdirTemp("", "m")
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	lis, err := net.Listen("unix", path)
	if err == nil {
		err = os.Chmod(path, 0o666)
	}
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	server := channel.NewServer(authn.New(authn.Options{}))
	channels := a.Register(server)
	done := make(chan error, 1)
	go func() { done <- server.Serve(lis) }()
	p.t.Cleanup(func() {
		server.Stop()
		channels.Wait()
		if err := <-done; err != nil {
			p.t.Error(err)
		}
	})
	return func(uid uint32) *grpc.ClientConn {
		return p.connection("passthrough:///"+path, authn.New(authn.Options{}), grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
			return asuser.Dial(uid, path)
		}))
	}
}

func (p *place) connection(address string, creds credentials.TransportCredentials, more ...grpc.DialOption) *grpc.ClientConn {
	conn, err := grpc.NewClient(address, append(more, grpc.WithTransportCredentials(creds))...)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// TestMatrix: two users and an admin, by certificate and by socket, with each other's
// applications and processes on two nodes: what they see, show, measure in, stop,
// register and serve.
func TestMatrix(t *testing.T) {
	p := newPlace(t)
	a := p.analyzer("a", func(c *Config) {
		c.Registrations = []*attunev1.Registration{{Id: "site-solver", Executable: "solver", Mode: "observe"}}
	})
	patience.Until(t, "it is claimed", func() bool { return a.table.owner("site-solver") != nil })
	admin := uint32(carolUID)
	byCertificate := map[uint32]*pki.Identity{
		annUID: p.pki.User(t, "ann", annUID), bobUID: p.pki.User(t, "bob", bobUID),
		carolUID: pkitest.Open(t, p.pki.Issue(t, pki.Request{Name: "carol", UID: &admin, Role: attunev1.Role_ROLE_ADMIN})),
	}
	as := p.sockets(a)
	users := map[uint32]string{annUID: "ann", bobUID: "bob", carolUID: "carol"}
	people := []person{{"root by socket", 0, true, as(0)}}
	registrations := map[string]uint32{"site-solver": 0} // 0: the site's
	for uid, name := range users {
		conn := p.as(byCertificate[uid], a)
		people = append(people, person{name + " by certificate", uid, uid == carolUID, conn}, person{name + " by socket", uid, false, as(uid)})
		// By socket, where carol is a user as others are.
		id := register(t, a, attunev1.NewSessionServiceClient(as(uid)), &attunev1.Registration{Executable: "solver", Mode: "observe"})
		registrations[id] = uid
	}
	sessions := p.sessionsOfAll(a, registrations, users)
	for _, who := range people {
		t.Run(who.name, func(t *testing.T) {
			sees(t, who, sessions)
			registersFor(t, who, users)
			stops(t, a, who, p, byCertificate)
		})
	}
	services := map[string]person{
		"node":     {"node by certificate", pki.NoUID, true, p.as(p.node, a)},
		"analyzer": {"analyzer by certificate", pki.NoUID, true, p.as(p.own, a)},
	}
	for role, who := range services {
		t.Run(who.name, func(t *testing.T) { speaksForNobody(t, role, who, sessions, users) })
	}
	for _, who := range append(people, services["node"]) {
		t.Run(who.name+" serves", func(t *testing.T) { p.serves(t, a, who, registrations, users) })
	}
}

// speaksForNobody: a service's certificate sees, shows, measures in, stops and
// registers nothing, for whomever it says it does. A node may tell of a job that was
// handed over to it, which is a reason for no other node to touch a process.
func speaksForNobody(t *testing.T, role string, who person, sessions []one, users map[uint32]string) {
	service, probes := attunev1.NewSessionServiceClient(who.conn), attunev1.NewProbeServiceClient(who.conn)
	refused := func(what string, err error) {
		t.Helper()
		if status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), "role "+role) {
			t.Errorf("%s: %v, want it refused for its role", what, err)
		}
	}
	_, err := service.ListSessions(t.Context(), &attunev1.ListSessionsRequest{})
	refused("lists", err)
	_, err = service.ListNodes(t.Context(), &attunev1.ListNodesRequest{})
	refused("lists nodes", err)
	_, err = service.LocateProcesses(t.Context(), &attunev1.LocateProcessesRequest{})
	refused("locates", err)
	for _, s := range sessions {
		_, err := service.ShowSession(t.Context(), &attunev1.ShowSessionRequest{Id: s.id})
		refused("shows", err)
		_, err = service.StopSession(t.Context(), &attunev1.StopSessionRequest{Id: s.id})
		refused("stops", err)
		_, err = probes.ListProbes(t.Context(), &attunev1.ListProbesRequest{Session: s.id})
		refused("measures", err)
	}
	for uid, name := range users {
		owner := &attunev1.Principal{Name: name, Uid: uid, Role: attunev1.Role_ROLE_USER}
		ofJob := &attunev1.Job{Kind: "slurm", Id: role}
		whole := &attunev1.Registration{Id: registry.HandedOverID(ofJob, uid), Executable: registry.HandedOver, Mode: "observe", Owner: owner, Job: ofJob}
		for what, change := range map[string]func(*attunev1.Registration){
			"an application":        func(r *attunev1.Registration) { r.Executable = "solver" },
			"under another id":      func(r *attunev1.Registration) { r.Id = "solver" },
			"without an id":         func(r *attunev1.Registration) { r.Id = "" },
			"of no job":             func(r *attunev1.Registration) { r.Job = nil },
			"of nobody":             func(r *attunev1.Registration) { r.Owner = nil },
			"of an admin":           func(r *attunev1.Registration) { r.Owner.Role = attunev1.Role_ROLE_ADMIN },
			"of the site":           func(r *attunev1.Registration) { r.Owner.Role = attunev1.Role_ROLE_ANALYZER },
			"of a node as the site": func(r *attunev1.Registration) { r.Owner.Role = attunev1.Role_ROLE_NODE },
		} {
			r := proto.CloneOf(whole)
			change(r)
			_, err := service.StartSession(t.Context(), &attunev1.StartSessionRequest{Registration: r})
			refused("registers "+what+" for "+name, err)
		}
		resp, err := service.StartSession(t.Context(), &attunev1.StartSessionRequest{Registration: whole})
		if role == "node" && err != nil || role != "node" && status.Code(err) != codes.PermissionDenied {
			t.Errorf("a job handed over: %v, %v", resp, err)
		}
	}
}

// one is a session of the matrix: whose registration, whose processes, where.
type one struct {
	id          string
	owner, user uint32
}

// sessionsOfAll has two nodes bring processes of everybody to everything registered,
// as their policies let them: a user's registration gets that user's.
func (p *place) sessionsOfAll(a *running, registrations map[string]uint32, users map[uint32]string) (all []one) {
	number := 0
	for id, owner := range registrations {
		for uid, name := range users {
			if owner != 0 && owner != uid {
				continue
			}
			for _, node := range []string{"n1", "n2"} {
				number++
				p.dial(a, of(hello(node, id, &attunev1.Job{Kind: "slurm", Id: fmt.Sprint(number)}), name, uid), uint64(number))
			}
		}
	}
	root := p.people(p.admin, a)
	patience.Until(p.t, "all sessions", func() bool { return len(list(p.t, root).GetSessions()) == number })
	for _, s := range list(p.t, root).GetSessions() {
		all = append(all, one{s.GetId(), registrations[s.GetRegistration()], s.GetUser().GetUid()})
	}
	return all
}

// sees: what is listed, shown and measured in are the same.
func sees(t *testing.T, who person, sessions []one) {
	service, probes := attunev1.NewSessionServiceClient(who.conn), attunev1.NewProbeServiceClient(who.conn)
	listed := make(map[string]bool)
	for _, s := range list(t, service).GetSessions() {
		listed[s.GetId()] = true
	}
	for _, s := range sessions {
		want := who.reaches(s.user) || s.owner != 0 && who.reaches(s.owner)
		if listed[s.id] != want {
			t.Errorf("lists %+v: %v, want %v", s, listed[s.id], want)
		}
		_, err := service.ShowSession(t.Context(), &attunev1.ShowSessionRequest{Id: s.id})
		if code := status.Code(err); (code != codes.NotFound) != want {
			t.Errorf("shows %+v: %v, want %v", s, err, want)
		}
		_, err = probes.ListProbes(t.Context(), &attunev1.ListProbesRequest{Session: s.id})
		if code := status.Code(err); (code != codes.NotFound) != want {
			t.Errorf("probes of %+v: %v, want %v", s, err, want)
		}
	}
}

// registersFor: an application of somebody is registered by who reaches them.
func registersFor(t *testing.T, who person, users map[uint32]string) {
	service := attunev1.NewSessionServiceClient(who.conn)
	for uid, name := range users {
		resp, err := service.StartSession(t.Context(), &attunev1.StartSessionRequest{Registration: &attunev1.Registration{Executable: "other", User: fmt.Sprint(uid)}})
		if (err == nil) != who.reaches(uid) || err != nil && status.Code(err) != codes.PermissionDenied {
			t.Errorf("registers for %s: %v, want %v", name, err, who.reaches(uid))
		}
		if err != nil {
			continue
		}
		stopped(t, service, resp.GetRegistration().GetId())
	}
}

// stopped stops what may be stopped, as soon as the registry has told of it.
func stopped(t *testing.T, service attunev1.SessionServiceClient, id string) {
	t.Helper()
	patience.Until(t, "it is stopped", func() bool {
		_, err := service.StopSession(t.Context(), &attunev1.StopSessionRequest{Id: id})
		if err != nil && status.Code(err) != codes.NotFound {
			t.Fatal(err)
		}
		return err == nil
	})
}

// stops: what somebody has registered is stopped by who reaches them.
func stops(t *testing.T, a *running, who person, p *place, byCertificate map[uint32]*pki.Identity) {
	for uid, identity := range byCertificate {
		owner := p.people(identity, a)
		id := register(t, a, owner, &attunev1.Registration{Executable: "stopped", Mode: "observe"})
		service := attunev1.NewSessionServiceClient(who.conn)
		if !who.reaches(uid) {
			if _, err := service.StopSession(t.Context(), &attunev1.StopSessionRequest{Id: id}); status.Code(err) != codes.NotFound {
				t.Errorf("stops what %d has registered: %v", uid, err)
			}
			service = owner
		}
		stopped(t, service, id)
	}
}

// serves: a controller of somebody brings processes to a session if they reach the
// processes' user, and the registration is the site's or its owner reached.
func (p *place) serves(t *testing.T, a *running, who person, registrations map[string]uint32, users map[uint32]string) {
	root, number := p.people(p.admin, a), 0
	for id, owner := range registrations {
		for uid, name := range users {
			for _, node := range []string{"n1", "n2"} {
				number++
				job := &attunev1.Job{Kind: "pbs", Id: fmt.Sprintf("%s-%d", strings.ReplaceAll(who.name, " ", "-"), number)}
				want := who.reaches(uid) && (owner == 0 || who.reaches(owner))
				c := p.dialOn(who.conn, of(hello(node, id, job), name, uid), 1)
				if !want {
					if err := c.why(); status.Code(err) != codes.PermissionDenied {
						t.Errorf("serves %s's process for what %d has registered: %v", name, owner, err)
					}
					continue
				}
				patience.Until(t, "the session", func() bool {
					for _, s := range list(t, root).GetSessions() {
						if s.GetJob().GetId() == job.GetId() && s.GetUser().GetUid() == uid {
							return true
						}
					}
					return false
				})
				c.cancel()
			}
		}
	}
}
