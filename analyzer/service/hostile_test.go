// SPDX-License-Identifier: Apache-2.0

package service

import (
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/attune-hpc/attune/internal/metrics"
	"github.com/attune-hpc/attune/internal/quota"
	"github.com/attune-hpc/attune/internal/registry"
	"github.com/attune-hpc/attune/internal/testing/patience"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	annUID = 4711 // whose processes the rig's controllers have
	bobUID = 4712
)

// of names the user of a controller's processes.
func of(h *attunev1.ControllerHello, name string, uid uint32) *attunev1.ControllerHello {
	h.User = &attunev1.Principal{Name: name, Uid: uid, Role: attunev1.Role_ROLE_USER}
	return h
}

// TestForeignControllers: a user's certificate does not speak for another, who
// may name what they like.
func TestForeignControllers(t *testing.T) {
	p := newPlace(t)
	a := p.analyzer("a", func(c *Config) {
		c.Registrations = []*attunev1.Registration{{Id: "site-solver", Executable: "solver", Mode: "observe"}}
	})
	patience.Until(t, "it is claimed", func() bool { return a.table.owner("site-solver") != nil })
	bob := p.pki.User(t, "bob", bobUID)
	annsOwn := register(t, a, p.people(p.pki.User(t, "ann", annUID), a), &attunev1.Registration{Executable: "solver", Mode: "observe"})
	tests := []struct {
		name  string
		hello *attunev1.ControllerHello
	}{
		{"her registration", of(hello("n1", annsOwn, job), "bob", bobUID)},
		{"her registration, as her", of(hello("n1", annsOwn, job), "ann", annUID)},
		{"her processes of the site's", of(hello("n1", "site-solver", job), "ann", annUID)},
		{"root's processes", of(hello("n1", "site-solver", job), "root", 0)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := p.dialAs(bob, a, tt.hello, 1).why(); status.Code(err) != codes.PermissionDenied {
				t.Errorf("%v", err)
			}
		})
	}
	if sessions := list(t, p.people(p.admin, a)).GetSessions(); len(sessions) > 0 {
		t.Errorf("there are sessions: %v", sessions)
	}
}

// TestSameJob: whoever gives their own processes somebody else's job id has a
// session of their own, and keeps nobody away.
func TestSameJob(t *testing.T) {
	p := newPlace(t)
	a := p.analyzer("a", func(c *Config) {
		c.Registrations = []*attunev1.Registration{{Id: "site-solver", Executable: "solver", Mode: "observe"}}
	})
	patience.Until(t, "it is claimed", func() bool { return a.table.owner("site-solver") != nil })
	p.dialAs(p.pki.User(t, "bob", bobUID), a, of(hello("far", "site-solver", job), "bob", bobUID))
	patience.Until(t, "bob has one", func() bool { return len(list(t, p.people(p.admin, a)).GetSessions()) == 1 })
	p.dial(a, of(hello("n1", "site-solver", job), "ann", annUID), 1)
	ann := p.people(p.pki.User(t, "ann", annUID), a)
	is(t, ann, "slurm/12 SESSION_STATE_RUNNING [n1] 1/1 [solver in.dat]")
	if got := list(t, ann).GetSessions()[0].GetId(); !strings.HasSuffix(got, ".u"+strconv.Itoa(annUID)) {
		t.Errorf("id %s", got)
	}
}

// TestManyJobs: one user does not take all sessions, neither by their own controllers nor
// by those of nodes.
func TestManyJobs(t *testing.T) {
	p := newPlace(t)
	a := p.analyzer("a", func(c *Config) {
		c.MaxSessions = 2 * userShare
		c.Registrations = []*attunev1.Registration{{Id: "site-solver", Executable: "solver", Mode: "observe"}}
	})
	patience.Until(t, "it is claimed", func() bool { return a.table.owner("site-solver") != nil })
	bob := p.pki.User(t, "bob", bobUID)
	const half = userShare // he has as many as are free
	for n := range half {
		h := of(hello("far", "site-solver", &attunev1.Job{Kind: "slurm", Id: strconv.Itoa(n)}), "bob", bobUID)
		if n%2 == 0 {
			p.dialAs(bob, a, h)
		} else {
			p.dial(a, h, 1)
		}
	}
	patience.Until(t, "bob has half of them", func() bool { return len(list(t, p.people(bob, a)).GetSessions()) == half })
	for by, why := range map[string]func() error{
		"bob": p.dialAs(bob, a, of(hello("far", "site-solver", job), "bob", bobUID)).why,
		"n2":  p.dial(a, of(hello("n2", "site-solver", job), "bob", bobUID), 1).why,
	} {
		if err := why(); status.Code(err) != codes.ResourceExhausted {
			t.Errorf("one more by %s: %v", by, err)
		}
	}
	p.dial(a, of(hello("n1", "site-solver", job), "ann", annUID), 1)
	is(t, p.people(p.pki.User(t, "ann", annUID), a), "slurm/12 SESSION_STATE_RUNNING [n1] 1/1 [solver in.dat]")
}

// TestSessionsBeginTooOften: who has sessions begin and end without end is turned away, for
// what is remembered of each; nobody else is.
func TestSessionsBeginTooOften(t *testing.T) {
	m, now := metrics.New(metrics.Analyzer), time.Now()
	var log strings.Builder
	rt := router{
		cfg: Config{MaxSessions: 8, Metrics: m}, table: newTable("a"), begun: quota.NewRate[uint32](4, beginEvery),
		now: func() time.Time { return now }, log: slog.New(slog.NewTextHandler(&log, nil)),
	}
	begun := 0
	for range 10 {
		if rt.roomForSession(bobUID) == nil {
			begun++
		}
	}
	if begun != 4 {
		t.Errorf("%d have begun, want 4", begun)
	}
	now = now.Add(tellEvery)
	_ = rt.roomForSession(bobUID)
	if told := log.String(); strings.Count(told, "not begun") != 2 || !strings.Contains(told, "refused_since_start=7") {
		t.Errorf("the log tells %s", told)
	}
	if err := rt.roomForSession(annUID); err != nil {
		t.Errorf("ann's: %v", err)
	}
	if want := `attune_analyzer_sessions_refused_total{reason="too_often"} 7`; !slices.Contains(scraped(m), want) {
		t.Errorf("without %s", want)
	}
}

// TestManyRegistrations: who registers many times at once, before the first is known, gets
// no more than they may have, and keeps nobody away.
func TestManyRegistrations(t *testing.T) {
	const most = 3
	p := newPlace(t)
	a := p.analyzer("a", func(c *Config) { c.maxRegistrations = most })
	bob, ann := p.pki.User(t, "bob", bobUID), p.pki.User(t, "ann", annUID)
	client := p.people(bob, a)
	answers := make(chan error)
	for n := range 10 * most {
		go func() {
			_, err := client.StartSession(t.Context(), &attunev1.StartSessionRequest{Registration: &attunev1.Registration{Executable: fmt.Sprintf("bomb%d", n)}})
			answers <- err
		}()
	}
	taken := 0
	for range 10 * most {
		if err := <-answers; err == nil {
			taken++
		} else if status.Code(err) != codes.ResourceExhausted {
			t.Error(err)
		}
	}
	if taken > most {
		t.Errorf("%d are taken, want at most %d", taken, most)
	}
	register(t, a, p.people(ann, a), &attunev1.Registration{Executable: "solver", Mode: "observe"})
}

// TestRegistersAsOneself: whatever a user writes into a registration, it is
// theirs, and reaches nobody else.
func TestRegistersAsOneself(t *testing.T) {
	p := newPlace(t)
	a := p.analyzer("a", nil)
	ann, bob := p.people(p.pki.User(t, "ann", annUID), a), p.people(p.pki.User(t, "bob", bobUID), a)
	hers := register(t, a, ann, &attunev1.Registration{Executable: "solver", Mode: "observe"})
	ask := func(r *attunev1.Registration) (*attunev1.Registration, error) {
		answer, err := bob.StartSession(t.Context(), &attunev1.StartSessionRequest{Registration: r})
		return answer.GetRegistration(), err
	}
	for name, owner := range map[string]*attunev1.Principal{
		"ann": {Name: "ann", Uid: annUID, Role: attunev1.Role_ROLE_USER}, "an admin": {Name: "bob", Uid: bobUID, Role: attunev1.Role_ROLE_ADMIN},
		"a node": {Name: "n1", Role: attunev1.Role_ROLE_NODE},
	} {
		r, err := ask(&attunev1.Registration{Id: hers, Executable: "solver", Arguments: name, Mode: "tune", Owner: owner})
		if err != nil || r.GetId() == hers || r.GetOwner().GetUid() != bobUID || r.GetOwner().GetRole() != attunev1.Role_ROLE_USER {
			t.Errorf("as %s: %v, %v", name, r, err)
		}
	}
	for _, user := range []string{"ann", "root", strconv.Itoa(annUID), "0"} {
		if r, err := ask(&attunev1.Registration{Executable: "solver", User: user}); status.Code(err) != codes.PermissionDenied {
			t.Errorf("for processes of %s: %v, %v", user, r, err)
		}
	}
	for name, r := range map[string]*attunev1.Registration{
		"a huge one":         {Executable: strings.Repeat("x", registry.MaxRegistration)},
		"one that takes all": {Executable: "solver", Arguments: strings.Repeat("(.?){1000}", 50)},
	} {
		if _, err := ask(r); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := bob.StopSession(t.Context(), &attunev1.StopSessionRequest{Id: hers}); status.Code(err) != codes.NotFound {
		t.Errorf("bob stops hers: %v", err)
	}
}
