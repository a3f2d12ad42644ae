// SPDX-License-Identifier: Apache-2.0

package service

import (
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/attune-hpc/attune/internal/quota"
	"github.com/attune-hpc/attune/internal/registry"
	"github.com/attune-hpc/attune/internal/testing/patience"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// handed is what a node tells of a user's job that was handed over to it.
func handed(job string, name string, uid uint32) *attunev1.Registration {
	j := &attunev1.Job{Kind: "slurm", Id: job}
	return &attunev1.Registration{
		Id: registry.HandedOverID(j, uid), Executable: registry.HandedOver, Mode: "observe", Job: j,
		Owner: &attunev1.Principal{Name: name, Uid: uid, Role: attunev1.Role_ROLE_USER}, RegisteredUnixNano: time.Now().UnixNano(),
	}
}

// TestManyJobsHandedOver: a user who hands over job after job has as many registrations as
// sessions, however many nodes tell of each, and keeps away neither others nor what they
// register themselves.
func TestManyJobsHandedOver(t *testing.T) {
	const most = 3
	p := newPlace(t)
	a := p.analyzer("a", func(c *Config) { c.MaxSessions = 2 * most })
	node := p.people(p.node, a)
	tell := func(r *attunev1.Registration) error {
		_, err := node.StartSession(t.Context(), &attunev1.StartSessionRequest{Registration: r})
		return err
	}
	var taken atomic.Int32
	var all sync.WaitGroup
	for n := range 10 * most {
		for range 2 { // nodes
			all.Go(func() {
				switch err := tell(handed(strconv.Itoa(n), "bob", bobUID)); {
				case err == nil:
					taken.Add(1)
				case status.Code(err) != codes.ResourceExhausted:
					t.Error(err)
				}
			})
		}
	}
	all.Wait()
	if n := taken.Load(); n != 2*most {
		t.Errorf("%d are taken, want %d jobs by two nodes each", n, most)
	}
	if err := tell(handed("12", "ann", annUID)); err != nil {
		t.Errorf("ann's: %v", err)
	}
	register(t, a, p.people(p.pki.User(t, "bob", bobUID), a), &attunev1.Registration{Executable: "solver", Mode: "observe"})
}

// TestHandedOverTooOften: who hands over job after job that ends at once is turned away. A
// job that all its nodes tell of counts once, and what another Analyzer has counts there.
func TestHandedOverTooOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHandedOver(newTable("a"), 8)
		see := func(owner string, jobs ...string) {
			v := registry.View{Registrations: make(map[string]*attunev1.Registration), Owners: make(map[string]*attunev1.OwnerRecord)}
			for _, job := range jobs {
				r := handed(job, "bob", bobUID)
				v.Registrations[r.GetId()] = r
				v.Owners[r.GetId()] = &attunev1.OwnerRecord{Analyzer: &attunev1.AnalyzerRecord{Id: owner}}
			}
			h.table.see(v)
		}
		enter := func(job string) codes.Code {
			first, err := h.enter(handed(job, "bob", bobUID))
			if err == nil && first.GetId() != handed(job, "bob", bobUID).GetId() {
				t.Errorf("job %s is %v", job, first)
			}
			return status.Code(err)
		}
		for range 1000 {
			if code := enter("1"); code != codes.OK {
				t.Fatalf("a job of many nodes: %v", code)
			}
		}
		for _, job := range []string{"2", "3", "4"} {
			if code := enter(job); code != codes.OK {
				t.Fatalf("job %s: %v", job, code)
			}
		}
		see("a", "1", "2", "3", "4")
		time.Sleep(time.Hour) // the rate allows more
		if code := enter("5"); code != codes.ResourceExhausted {
			t.Errorf("one more: %v", code)
		}
		see("b", "1", "2", "3", "4")
		for job := range 4 {
			if code := enter("6" + strconv.Itoa(job)); code != codes.OK {
				t.Errorf("others are at another Analyzer: %v", code)
			}
		}
		see("a") // all are over
		time.Sleep(comingPatience + time.Second)
		if code := enter("7"); code != codes.OK {
			t.Errorf("after %v: %v", comingPatience, code)
		}
		see("a")
		h.rate = quota.NewRate[uint32](1, time.Hour)
		enter("8")
		if code := enter("9"); code != codes.ResourceExhausted {
			t.Errorf("too often: %v", code)
		}
	})
}

// TestHandedOverAnew: of a job that is handed over with other wishes the latest count, unless
// the registry tells of the job. Another user's stays.
func TestHandedOverAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHandedOver(newTable("a"), 8)
		enter := func(r *attunev1.Registration) *attunev1.Registration {
			got, err := h.enter(r)
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		first := handed("1", "bob", bobUID)
		enter(first)
		time.Sleep(time.Second)
		if got := enter(handed("1", "bob", bobUID)); got != first {
			t.Errorf("another node's is %v, want the first", got)
		}
		again := handed("1", "bob", bobUID)
		again.Mode = "tune"
		if got := enter(again); got != again {
			t.Errorf("with another mode it is %v", got)
		}
		foreign := handed("1", "bob", bobUID)
		foreign.Owner.Uid = annUID
		if got := enter(foreign); got != again {
			t.Errorf("another user's is %v", got)
		}
		v := registry.View{Registrations: map[string]*attunev1.Registration{again.GetId(): again}}
		h.table.see(v)
		h.see(v)
		h.table.see(registry.View{}) // it was taken back
		last := handed("1", "bob", bobUID)
		last.Mode = "tune"
		if got := enter(last); got != last {
			t.Errorf("after it was taken back it is %v", got)
		}
	})
}

// TestHandedOverAfterItWasTakenBack has a service forget the job that it was told of.
func TestHandedOverAfterItWasTakenBack(t *testing.T) {
	p := newPlace(t)
	a := p.analyzer("a", nil)
	node := p.people(p.node, a)
	tell := func() int64 {
		answer, err := node.StartSession(t.Context(), &attunev1.StartSessionRequest{Registration: handed("1", "bob", bobUID)})
		if err != nil {
			t.Fatal(err)
		}
		return answer.GetRegistration().GetRegisteredUnixNano()
	}
	id := handed("1", "bob", bobUID).GetId()
	before := tell()
	patience.Until(t, "it is claimed", func() bool { return a.table.owner(id) != nil && a.table.registrations()[id] != nil })
	if err := p.records.DeleteRegistration(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	patience.Until(t, "it is gone", func() bool { return a.table.registrations()[id] == nil })
	if after := tell(); after == before {
		t.Error("it is the registration from before")
	}
}

// TestHandedOverWithoutSession: the registration of a job that was handed over goes when
// nobody has asked for its session for long, and stays for who is refused one and asks on.
func TestHandedOverWithoutSession(t *testing.T) {
	p := newPlace(t)
	a := p.analyzer("a", func(c *Config) { c.MaxSessions = 1 })
	node := p.people(p.node, a)
	jobs := make(map[string]*attunev1.Registration)
	for job, uid := range map[string]uint32{"served": annUID, "over": bobUID, "refused": 4713} {
		r := handed(job, job, uid)
		if _, err := node.StartSession(t.Context(), &attunev1.StartSessionRequest{Registration: r}); err != nil {
			t.Fatal(err)
		}
		patience.Until(t, "it is claimed", func() bool {
			return a.table.owner(r.GetId()) != nil && a.table.registrations()[r.GetId()] != nil
		})
		jobs[job] = r
	}
	serve := func(job string) *controller {
		r := jobs[job]
		return p.dial(a, of(hello("n1", r.GetId(), r.GetJob()), job, r.GetOwner().GetUid()), 1)
	}
	serve("served")
	patience.Until(t, "it has a session", func() bool { return len(a.table.hostedOf("")) == 1 })
	for _, r := range jobs { // all are old
		o := a.table.owner(r.GetId())
		a.table.mu.Lock()
		o.asked = o.asked.Add(-handedOverPatience)
		a.table.mu.Unlock()
	}
	if err := serve("refused").why(); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a second session: %v", err)
	}
	for _, r := range jobs {
		a.claims.tidy(t.Context(), a.table.owner(r.GetId()))
	}
	patience.Until(t, "one is gone", func() bool { return len(a.table.registrations()) < len(jobs) })
	left := a.table.registrations()
	if len(left) != 2 || left[jobs["over"].GetId()] != nil {
		t.Errorf("there are %v", left)
	}
}

// TestStoppedJobStaysStopped: a job whose session was stopped is left alone when its next step is
// handed over after the registration has gone, and by the Analyzer that comes next.
func TestStoppedJobStaysStopped(t *testing.T) {
	for name, goOn := range map[string]func(*place, *running, func(*running)) *running{
		"handed over again": func(_ *place, a *running, handOver func(*running)) *running {
			id := handed("1347", "bob", bobUID).GetId()
			a.claims.tidy(t.Context(), a.table.owner(id))
			patience.Until(t, "it is gone", func() bool { return a.table.registrations()[id] == nil && a.table.owner(id) == nil })
			handOver(a)
			return a
		},
		"another Analyzer": func(p *place, a *running, _ func(*running)) *running {
			a.end()
			return p.analyzer("b", nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			r := handed("1347", "bob", bobUID)
			handOver := func(a *running) {
				if _, err := p.people(p.node, a).StartSession(t.Context(), &attunev1.StartSessionRequest{Registration: r}); err != nil {
					t.Fatal(err)
				}
			}
			step := func(a *running) *controller {
				patience.Until(t, "it is claimed", func() bool { return a.table.owner(r.GetId()) != nil && a.table.registrations()[r.GetId()] != nil })
				return p.dial(a, of(hello("n1", r.GetId(), r.GetJob()), "bob", bobUID), 1)
			}
			a := p.analyzer("a", nil)
			handOver(a)
			c := step(a)
			bob := p.people(p.pki.User(t, "bob", bobUID), a)
			patience.Until(t, "it has a session", func() bool { return len(lines(t, bob)) == 1 })
			if _, err := bob.StopSession(t.Context(), &attunev1.StopSessionRequest{Id: "1347"}); err != nil {
				t.Fatal(err)
			}
			if err := c.why(); err != nil {
				t.Error(err)
			}
			patience.Until(t, "the registry knows that it has ended", func() bool {
				records, err := p.records.Sessions(t.Context())
				return err == nil && len(records) == 1 && records[0].GetEndedUnixNano() != 0
			})
			if err := step(goOn(p, a, handOver)).why(); status.Code(err) != codes.Aborted {
				t.Errorf("the next step: %v", err)
			}
		})
	}
}
