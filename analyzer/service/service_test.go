// SPDX-License-Identifier: Apache-2.0

package service

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/internal/testing/patience"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

var job = &attunev1.Job{Kind: "slurm", Id: "12", Step: "0"}

// hello is that of a node's controller.
func hello(node, registration string, of *attunev1.Job, inForce ...string) *attunev1.ControllerHello {
	return &attunev1.ControllerHello{
		ControllerId: "ac-" + node + "-" + of.GetId(), Host: node, Registration: registration, Job: of, InForce: inForce, Protocol: attunev1.Protocol,
		User: &attunev1.Principal{Name: "ann", Uid: 4711, Role: attunev1.Role_ROLE_USER},
	}
}

// register registers an application and returns the registration's id, when the
// Analyzer has it.
func register(t *testing.T, a *running, people attunev1.SessionServiceClient, r *attunev1.Registration) string {
	t.Helper()
	resp, err := people.StartSession(t.Context(), &attunev1.StartSessionRequest{Registration: r})
	if err != nil {
		t.Fatal(err)
	}
	id := resp.GetRegistration().GetId()
	patience.Until(t, "it is claimed", func() bool { return a.table.owner(id) != nil && a.table.registrations()[id] != nil })
	return id
}

// list lists what somebody sees.
func list(t *testing.T, people attunev1.SessionServiceClient) *attunev1.ListSessionsResponse {
	t.Helper()
	resp, err := people.ListSessions(t.Context(), &attunev1.ListSessionsRequest{Ended: true})
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// lines tells of sessions in a line each.
func lines(t *testing.T, people attunev1.SessionServiceClient) (out []string) {
	t.Helper()
	for _, s := range list(t, people).GetSessions() {
		out = append(out, fmt.Sprintf("%s/%s %s %v %d/%d %v", s.GetJob().GetKind(), s.GetJob().GetId(), s.GetState(), s.GetHosts(), s.GetRunning(), s.GetProcesses(), s.GetCommandLine()))
	}
	return out
}

// is waits until somebody sees these sessions.
func is(t *testing.T, people attunev1.SessionServiceClient, want ...string) {
	t.Helper()
	var diff string
	defer func() {
		if t.Failed() {
			t.Log(diff)
		}
	}()
	patience.Until(t, "sessions are as wanted", func() bool {
		diff = cmp.Diff(want, lines(t, people))
		return diff == ""
	})
}

// TestSessionsOfExecutions has two nodes with one execution and another one
// beside it, until they end.
func TestSessionsOfExecutions(t *testing.T) {
	p := newPlace(t)
	a := p.analyzer("a", nil)
	ann := p.people(p.pki.User(t, "ann", 4711), a)
	id := register(t, a, ann, &attunev1.Registration{Executable: "solver", Mode: "observe"})
	other := &attunev1.Job{Kind: "slurm", Id: "13"}
	one, two, beside := p.dial(a, hello("n1", id, job), 1, 2), p.dial(a, hello("n2", id, job), 1), p.dial(a, hello("n1", id, other), 3)
	is(t, ann,
		"slurm/12 SESSION_STATE_RUNNING [n1 n2] 3/3 [solver in.dat]",
		"slurm/13 SESSION_STATE_RUNNING [n1] 1/1 [solver in.dat]")
	live, err := ann.ShowSession(t.Context(), &attunev1.ShowSessionRequest{Id: list(t, ann).GetSessions()[0].GetId()})
	if err != nil {
		t.Fatal(err)
	}
	if r := readReport(t, live.GetReport()); r.Finished || len(r.Processes) != 3 {
		t.Errorf("report while it runs: %+v", r)
	}
	for handle, c := range map[uint64]*controller{1: one, 2: one} {
		c.stop(handle)
	}
	two.stop(1)
	one.leave()
	two.leave()
	patience.Until(t, "the session whose controllers have left to end, and no other one", func() bool {
		a.pass()
		return slices.Equal(lines(t, ann), []string{
			"slurm/12 SESSION_STATE_ENDED [n1 n2] 0/3 [solver in.dat]",
			"slurm/13 SESSION_STATE_RUNNING [n1] 1/1 [solver in.dat]",
		})
	})
	ended, err := ann.ShowSession(t.Context(), &attunev1.ShowSessionRequest{Id: list(t, ann).GetSessions()[0].GetId()})
	if err != nil {
		t.Fatal(err)
	}
	r := readReport(t, ended.GetReport())
	if !r.Finished || r.Exit.Code == nil || *r.Exit.Code != 0 || r.JobID != ended.GetSession().GetId() {
		t.Errorf("report of the end: %+v", r)
	}
	// The same execution again is another session.
	again := p.dial(a, hello("n1", id, job), 9)
	patience.Until(t, "there is a third one", func() bool { return len(lines(t, ann)) == 3 })
	again.leave()
	beside.leave()
}

// TestEndedBeforeTheRegistryKnows: what this Analyzer tells of its own sessions
// does not wait for the registry.
func TestEndedBeforeTheRegistryKnows(t *testing.T) {
	p := newPlace(t)
	a := p.analyzer("a", nil)
	ann := p.people(p.pki.User(t, "ann", 4711), a)
	id := register(t, a, ann, &attunev1.Registration{Executable: "solver", Mode: "observe"})
	c := p.dial(a, hello("n1", id, job), 1)
	is(t, ann, "slurm/12 SESSION_STATE_RUNNING [n1] 1/1 [solver in.dat]")
	patience.Until(t, "the registry to have the session", func() bool {
		records, err := p.records.Sessions(t.Context())
		return err == nil && len(records) == 1
	})
	a.deaf.Store(true)
	c.stop(1)
	c.leave()
	patience.Until(t, "the session to leave its place", func() bool {
		a.pass()
		return len(a.table.hostedOf(id)) == 0
	})
	is(t, ann, "slurm/12 SESSION_STATE_ENDED [n1] 0/1 [solver in.dat]")
	ended, err := ann.ShowSession(t.Context(), &attunev1.ShowSessionRequest{Id: list(t, ann).GetSessions()[0].GetId()})
	if err != nil {
		t.Fatal(err)
	}
	if r := readReport(t, ended.GetReport()); !r.Finished {
		t.Errorf("report of the end: %+v", r)
	}
	a.deaf.Store(false)
	patience.Until(t, "the registry to know", func() bool {
		records, err := p.records.Sessions(t.Context())
		return err == nil && records[0].GetState() == attunev1.SessionState_SESSION_STATE_ENDED
	})
}

func readReport(t *testing.T, text []byte) *report.Report {
	t.Helper()
	var r report.Report
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return &r
}

// TestStop stops a session, which stays stopped, and then its registration.
func TestStop(t *testing.T) {
	p := newPlace(t)
	a := p.analyzer("a", nil)
	ann := p.people(p.pki.User(t, "ann", 4711), a)
	id := register(t, a, ann, &attunev1.Registration{Executable: "solver"})
	c := p.dial(a, hello("n1", id, job), 1)
	is(t, ann, "slurm/12 SESSION_STATE_RUNNING [n1] 1/1 [solver in.dat]")
	resp, err := ann.StopSession(t.Context(), &attunev1.StopSessionRequest{Id: list(t, ann).GetSessions()[0].GetId()})
	if err != nil || len(resp.GetSessions()) != 1 {
		t.Fatalf("%v, %v", resp, err)
	}
	if r := c.request(func(r *attunev1.ManageResponse) bool { return r.GetEnd() != nil }); len(r.GetEnd().GetKeep()) != 0 {
		t.Errorf("asked to keep %v", r)
	}
	if err := c.why(); err != nil {
		t.Errorf("the channel of a controller that left ended with %v", err)
	}
	stopped, err := ann.ShowSession(t.Context(), &attunev1.ShowSessionRequest{Id: resp.GetSessions()[0].GetId()})
	if err != nil {
		t.Fatal(err)
	}
	if r := readReport(t, stopped.GetReport()); r.Finished || len(r.Processes) != 1 || r.Processes[0].EndedSeconds != nil {
		t.Errorf("report of a session whose process goes on: %+v", r)
	}
	if err := p.dial(a, hello("n2", id, job)).why(); status.Code(err) != codes.Aborted {
		t.Errorf("another node of a stopped session: %v", err)
	}
	other := p.dial(a, hello("n1", id, &attunev1.Job{Kind: "slurm", Id: "13"}), 2)
	patience.Until(t, "the next execution runs", func() bool { return len(lines(t, ann)) == 2 })
	if resp, err = ann.StopSession(t.Context(), &attunev1.StopSessionRequest{Id: id}); err != nil || resp.GetRegistration().GetId() != id {
		t.Fatalf("%v, %v", resp, err)
	}
	if err := other.why(); err != nil {
		t.Error(err)
	}
	patience.Until(t, "it is gone", func() bool { return a.table.registrations()[id] == nil })
	if err := p.dial(a, hello("n1", id, job)).why(); status.Code(err) != codes.NotFound {
		t.Errorf("after the registration was withdrawn: %v", err)
	}
	if left := list(t, ann).GetRegistrations(); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// TestNamesOfRegistrations: whatever an application is called, its registration can be
// typed, and taken back by its owner.
func TestNamesOfRegistrations(t *testing.T) {
	p := newPlace(t)
	a := p.analyzer("a", nil)
	ann := p.people(p.pki.User(t, "ann", annUID), a)
	for _, executable := range []string{"/home/ann/site-solver", "site", "/home/ann/bin/*", "模型"} {
		id := register(t, a, ann, &attunev1.Registration{Executable: executable})
		if strings.HasPrefix(id, "-") || strings.HasPrefix(id, SiteID) {
			t.Errorf("%s is registered as %s", executable, id)
		}
		if _, err := ann.StopSession(t.Context(), &attunev1.StopSessionRequest{Id: id}); err != nil {
			t.Errorf("take back %s: %v", id, err)
		}
	}
}

// TestPeople asks as several people for what is of one of them.
func TestPeople(t *testing.T) {
	p := newPlace(t)
	a := p.analyzer("a", nil)
	ann, bob, node := p.people(p.pki.User(t, "ann", 4711), a), p.people(p.pki.User(t, "bob", 4712), a), p.people(p.admin, a)
	id := register(t, a, ann, &attunev1.Registration{Executable: "solver", Mode: "observe"})
	if _, err := ann.StartSession(t.Context(), &attunev1.StartSessionRequest{Registration: &attunev1.Registration{Executable: "solver", Mode: "tune"}}); status.Code(err) != codes.AlreadyExists ||
		!strings.Contains(err.Error(), id) {
		t.Errorf("the same once more: %v", err)
	}
	if _, err := ann.ShowSession(t.Context(), &attunev1.ShowSessionRequest{Id: id}); status.Code(err) != codes.NotFound || !strings.Contains(err.Error(), "has no session yet") {
		t.Errorf("a registration without a session: %v", err)
	}
	c := p.dial(a, hello("n1", id, job), 1)
	is(t, ann, "slurm/12 SESSION_STATE_RUNNING [n1] 1/1 [solver in.dat]")
	is(t, bob)
	for _, name := range []string{"12", "12.0", "slurm/12", "slurm-12.0"} {
		if shown, err := ann.ShowSession(t.Context(), &attunev1.ShowSessionRequest{Id: name}); err != nil || shown.GetSession().GetJob().GetId() != "12" {
			t.Errorf("ann sees of %s: %v, %v", name, shown.GetSession(), err)
		}
		if _, err := bob.ShowSession(t.Context(), &attunev1.ShowSessionRequest{Id: name}); status.Code(err) != codes.NotFound {
			t.Errorf("bob sees %s: %v", name, err)
		}
	}
	is(t, node, "slurm/12 SESSION_STATE_RUNNING [n1] 1/1 [solver in.dat]")
	session := list(t, ann).GetSessions()[0].GetId()
	for _, what := range []string{id, session} {
		if _, err := bob.StopSession(t.Context(), &attunev1.StopSessionRequest{Id: what}); status.Code(err) != codes.NotFound {
			t.Errorf("bob stops %s: %v", what, err)
		}
		if _, err := bob.ShowSession(t.Context(), &attunev1.ShowSessionRequest{Id: what}); status.Code(err) != codes.NotFound {
			t.Errorf("bob sees %s: %v", what, err)
		}
	}
	if _, err := bob.StartSession(t.Context(), &attunev1.StartSessionRequest{Registration: &attunev1.Registration{Executable: "x", User: "ann"}}); status.Code(err) != codes.PermissionDenied {
		t.Errorf("bob registers ann's: %v", err)
	}
	if r := list(t, bob).GetRegistrations(); len(r) != 0 {
		t.Errorf("bob sees %v", r)
	}
	c.leave()
}

// TestTakeover ends an Analyzer: another one goes on with its session and with
// what it kept, though the registry has lost the session's record meanwhile. For one that is killed see the tests of the command.
func TestTakeover(t *testing.T) {
	p := newPlace(t)
	r := &attunev1.Registration{Id: "solver-1", Executable: "solver", Mode: "tune"}
	if err := p.records.PutRegistration(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	kept := &attunev1.KeptChange{Id: "old-c1", Host: "n1", Pid: 1, Knob: "k", Tunlet: "t"}
	begun := &attunev1.SessionRecord{
		Id: sessionID(r, job, nil, 1), Registration: r.GetId(), Job: job, State: attunev1.SessionState_SESSION_STATE_RUNNING,
		StartedUnixNano: 1, Running: 1, Processes: 1, KeptChanges: []*attunev1.KeptChange{kept},
	}
	if err := p.records.PutSession(t.Context(), begun); err != nil {
		t.Fatal(err)
	}
	a := p.analyzer("a", nil)
	patience.Until(t, "one has the registration", func() bool { return a.table.owner(r.GetId()) != nil })
	c := p.dial(a, hello("n1", r.GetId(), job, "old-c1"), 1)
	is(t, p.people(p.admin, a), "slurm/12 SESSION_STATE_RUNNING [n1] 1/1 [solver in.dat]")
	b := p.analyzer("b", nil)
	// sameAt waits until the session is known as an Analyzer's.
	sameAt := func(analyzer string) {
		t.Helper()
		want := []string{fmt.Sprintf("%s of %s since 1, 1 running, kept [old-c1]", begun.GetId(), analyzer)}
		var got []string
		defer func() {
			if t.Failed() {
				t.Log(got)
			}
		}()
		patience.Until(t, "the session is of "+analyzer, func() bool {
			got = nil
			for _, s := range list(t, p.people(p.admin, b)).GetSessions() {
				var kept []string
				for _, k := range s.GetKeptChanges() {
					kept = append(kept, k.GetId())
				}
				got = append(got, fmt.Sprintf("%s of %s since %d, %d running, kept %v", s.GetId(), s.GetAnalyzer(), s.GetStartedUnixNano(), s.GetRunning(), kept))
			}
			return slices.Equal(got, want)
		})
	}
	sameAt("a")
	patience.Until(t, "the other one sees whose it is", func() bool {
		b.table.mu.Lock()
		defer b.table.mu.Unlock()
		return b.table.view.Owners[r.GetId()] != nil
	})
	if err := p.dial(b, hello("n1", r.GetId(), job)).why(); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("at the wrong Analyzer: %v", err)
	}
	lost := proto.CloneOf(begun)
	lost.Registration = "another" // as if there were none of this one
	if err := p.records.PutSession(t.Context(), lost); err != nil {
		t.Fatal(err)
	}
	a.end()
	if err := c.why(); status.Code(err) != codes.Unavailable {
		t.Errorf("the channel ended with %v", err)
	}
	patience.Until(t, "the other one has the registration", func() bool { return b.table.owner(r.GetId()) != nil })
	c = p.dial(b, hello("n1", r.GetId(), job, "old-c1", "stray"), 1)
	renewed := c.request(func(r *attunev1.ManageResponse) bool { return len(r.GetRenew().GetChanges()) > 0 })
	if diff := cmp.Diff([]string{"old-c1"}, renewed.GetRenew().GetChanges()); diff != "" {
		t.Error(diff)
	}
	undone := c.request(func(r *attunev1.ManageResponse) bool { return r.GetUndo() != nil })
	if diff := cmp.Diff([]string{"stray"}, undone.GetUndo().GetChangeIds()); diff != "" {
		t.Error(diff)
	}
	sameAt("b")
	c.leave()
}

// TestTakeoverToObserve: what an earlier session kept is given back if its registration
// was changed to observe while no Analyzer had it.
func TestTakeoverToObserve(t *testing.T) {
	p := newPlace(t)
	r := &attunev1.Registration{Id: "solver-1", Executable: "solver", Mode: "observe"}
	if err := p.records.PutRegistration(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if err := p.records.PutSession(t.Context(), &attunev1.SessionRecord{
		Id: sessionID(r, job, nil, 1), Registration: r.GetId(), Job: job, State: attunev1.SessionState_SESSION_STATE_RUNNING,
		KeptChanges: []*attunev1.KeptChange{{Id: "old-c1", Host: "n1", Pid: 1, Knob: "k", Tunlet: "t"}},
	}); err != nil {
		t.Fatal(err)
	}
	a := p.analyzer("a", nil)
	patience.Until(t, "it has the registration", func() bool { return a.table.owner(r.GetId()) != nil })
	c := p.dial(a, hello("n1", r.GetId(), job, "old-c1"), 1)
	undone := c.request(func(r *attunev1.ManageResponse) bool { return r.GetUndo() != nil })
	if diff := cmp.Diff([]string{"old-c1"}, undone.GetUndo().GetChangeIds()); diff != "" {
		t.Error(diff)
	}
	c.leave()
}

// TestOrphans takes over sessions whose controllers do not come.
func TestOrphans(t *testing.T) {
	p := newPlace(t)
	if err := p.records.PutRegistration(t.Context(), &attunev1.Registration{Id: "r", Executable: "solver", Mode: "tune"}); err != nil {
		t.Fatal(err)
	}
	if err := p.records.PutSession(t.Context(), &attunev1.SessionRecord{
		Id: "r.slurm-12.0", Registration: "r", Job: job, State: attunev1.SessionState_SESSION_STATE_RUNNING, Running: 1, Processes: 1,
	}); err != nil {
		t.Fatal(err)
	}
	a := p.analyzer("a", func(c *Config) { c.Linger, c.Grace = 50*time.Millisecond, 50*time.Millisecond })
	is(t, p.people(p.admin, a), "slurm/12 SESSION_STATE_ENDED [] 0/1 []")
}

// TestSite brings the registry in line with the configuration.
func TestSite(t *testing.T) {
	p := newPlace(t)
	solver := &attunev1.Registration{Id: "site-solver", Executable: "solver", Mode: "observe"}
	a := p.analyzer("a", func(c *Config) { c.Registrations = []*attunev1.Registration{solver} })
	patience.Until(t, "it is claimed", func() bool { return a.table.owner("site-solver") != nil })
	c := p.dial(a, hello("n1", "site-solver", job), 1)
	ann := p.people(p.pki.User(t, "ann", 4711), a)
	is(t, ann, "slurm/12 SESSION_STATE_RUNNING [n1] 1/1 [solver in.dat]") // it is of her processes
	if _, err := p.people(p.admin, a).StopSession(t.Context(), &attunev1.StopSessionRequest{Id: "site-solver"}); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("stop what is configured: %v", err)
	}
	a.end()
	if err := c.why(); status.Code(err) != codes.Unavailable {
		t.Error(err)
	}
	b := p.analyzer("a", nil)
	patience.Until(t, "it is gone", func() bool { return len(list(t, p.people(p.admin, b)).GetRegistrations()) == 0 })
}

// TestTakenOutOfTheConfiguration ends the sessions of a registration, of which there are reports.
func TestTakenOutOfTheConfiguration(t *testing.T) {
	p := newPlace(t)
	solver := &attunev1.Registration{Id: "site-solver", Executable: "solver", Mode: "observe"}
	a := p.analyzer("a", func(c *Config) { c.Registrations = []*attunev1.Registration{solver} })
	patience.Until(t, "it is claimed", func() bool { return a.table.owner("site-solver") != nil })
	c := p.dial(a, hello("n1", "site-solver", job), 1)
	is(t, p.people(p.admin, a), "slurm/12 SESSION_STATE_RUNNING [n1] 1/1 [solver in.dat]")
	a.SetRegistrations(nil)
	c.request(func(r *attunev1.ManageResponse) bool { return r.GetEnd() != nil })
	if err := c.why(); err != nil {
		t.Errorf("the channel of a controller that left ended with %v", err)
	}
	is(t, p.people(p.admin, a), "slurm/12 SESSION_STATE_ENDED [n1] 0/1 [solver in.dat]")
}

// TestChangedInTheConfiguration ends the sessions of a registration that asks for something
// else than before. Their nodes begin the next ones, which are as it asks now.
func TestChangedInTheConfiguration(t *testing.T) {
	p := newPlace(t)
	as := func(mode string) []*attunev1.Registration {
		return []*attunev1.Registration{{Id: "site-solver", Executable: "solver", Mode: mode}}
	}
	a := p.analyzer("a", func(c *Config) { c.Registrations = as("tune") })
	patience.Until(t, "it is claimed", func() bool { return a.table.owner("site-solver") != nil })
	c := p.dial(a, hello("n1", "site-solver", job), 1)
	admin := p.people(p.admin, a)
	is(t, admin, "slurm/12 SESSION_STATE_RUNNING [n1] 1/1 [solver in.dat]")
	a.SetRegistrations(as("observe"))
	c.request(func(r *attunev1.ManageResponse) bool { return r.GetEnd() != nil })
	next := hello("n1", "site-solver", job)
	next.ControllerId += "-next"
	c = p.dial(a, next, 1) // the first session may still be ending
	is(t, admin,
		"slurm/12 SESSION_STATE_ENDED [n1] 0/1 [solver in.dat]",
		"slurm/12 SESSION_STATE_RUNNING [n1] 1/1 [solver in.dat]")
	for i, mode := range []string{"tune", "observe"} {
		shown, err := admin.ShowSession(t.Context(), &attunev1.ShowSessionRequest{Id: list(t, admin).GetSessions()[i].GetId()})
		if err != nil {
			t.Fatal(err)
		}
		if r := readReport(t, shown.GetReport()); r.Mode != mode || r.Finished {
			t.Errorf("session %d: %+v, want mode %s", i, r, mode)
		}
	}
	c.leave()
}

// TestBounds has one session and one registration at most.
func TestBounds(t *testing.T) {
	p := newPlace(t)
	a := p.analyzer("a", func(c *Config) { c.MaxSessions, c.maxRegistrations = 1, 1 })
	ann := p.people(p.pki.User(t, "ann", 4711), a)
	id := register(t, a, ann, &attunev1.Registration{Executable: "solver", Mode: "observe"})
	patience.Until(t, "it is known", func() bool { return len(list(t, ann).GetRegistrations()) == 1 })
	if _, err := ann.StartSession(t.Context(), &attunev1.StartSessionRequest{Registration: &attunev1.Registration{Executable: "x"}}); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a second registration: %v", err)
	}
	c := p.dial(a, hello("n1", id, job), 1)
	patience.Until(t, "it runs", func() bool { return len(lines(t, ann)) == 1 })
	if err := p.dial(a, hello("n1", id, &attunev1.Job{Kind: "slurm", Id: "13"})).why(); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a second session: %v", err)
	}
	c.leave()
}
