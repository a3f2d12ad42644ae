// SPDX-License-Identifier: Apache-2.0

package service

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/attune-hpc/attune/internal/registry"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestWaitsForOwnership has a controller come when the registry names this
// Analyzer already, which still reads what there was before.
func TestWaitsForOwnership(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, routed := awaitsOwnership(t)
		if !s.enter(newOwned("r", nil)) {
			t.Fatal("not entered")
		}
		if err := <-routed; err != nil {
			t.Errorf("the controller was told: %v", err)
		}
	})
}

// TestOwnershipOfTheWithdrawn: a controller that came when its registration was being
// withdrawn is told so at once.
func TestOwnershipOfTheWithdrawn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, routed := awaitsOwnership(t)
		begin := time.Now()
		s.see(registry.View{Registrations: map[string]*attunev1.Registration{}})
		if err := <-routed; status.Code(err) != codes.NotFound || time.Since(begin) > 0 {
			t.Errorf("after %v the controller was told: %v", time.Since(begin), err)
		}
	})
}

// awaitsOwnership is a table in which a controller waits for this Analyzer to have the
// registration r, and what it is told.
func awaitsOwnership(t *testing.T) (*table, <-chan error) {
	t.Helper()
	s, told := newTable("a"), make(chan error, 1)
	s.see(registry.View{
		Registrations: map[string]*attunev1.Registration{"r": {}},
		Owners:        map[string]*attunev1.OwnerRecord{"r": {Analyzer: &attunev1.AnalyzerRecord{Id: "a"}}},
	})
	go func() { told <- s.awaitOwnership(t.Context(), "r", routePatience) }()
	synctest.Wait()
	return s, told
}

// TestForgetsWhatHasEnded: a session's id is not given twice while the registry
// knows it, and is then forgotten.
func TestForgetsWhatHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &claims{table: newTable("a")}
		r, o := &attunev1.Registration{Id: "r"}, newOwned("r", nil)
		next := func() *attunev1.SessionRecord {
			record, err := o.next(r, job, nil)
			if err != nil {
				t.Fatal(err)
			}
			return record
		}
		first := next()
		first.EndedUnixNano = time.Now().UnixNano()
		o.end(newKey(r.Id, job, nil), first)
		if second := next(); second.GetId() == first.GetId() {
			t.Errorf("%s is given twice", second.GetId())
		}
		time.Sleep(endedKept + time.Second)
		c.tidy(t.Context(), o)
		if len(o.ended) != 0 || len(o.past) != 0 {
			t.Errorf("kept: %v, %v", o.ended, o.past)
		}
	})
}

// TestStopOutlivesEarlierSessions: an execution is left alone for a week after it was stopped,
// also when its first session is forgotten by then, whose number is free again.
func TestStopOutlivesEarlierSessions(t *testing.T) {
	ann := &attunev1.Principal{Uid: annUID, Role: attunev1.Role_ROLE_USER}
	record := func(number int, ended time.Time) *attunev1.SessionRecord {
		r := &attunev1.SessionRecord{
			Id: sessionID(&attunev1.Registration{Id: "r"}, job, ann, number), Registration: "r", Job: job, User: ann, Stopped: number > 1,
		}
		if !ended.IsZero() {
			r.EndedUnixNano = ended.UnixNano()
		}
		return r
	}
	for name, stop := range map[string]func(*owned){
		"here":                     func(o *owned) { o.end(newKey("r", job, ann), record(2, time.Now())) },
		"at an Analyzer before":    func(o *owned) { o.recall([]*attunev1.SessionRecord{record(2, time.Now())}) },
		"by an Analyzer that died": func(o *owned) { o.recall([]*attunev1.SessionRecord{record(2, time.Time{})}) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, o := &attunev1.Registration{Id: "r"}, newOwned("r", nil)
				next := func(j *attunev1.Job) error {
					_, err := o.next(r, j, ann)
					return err
				}
				o.end(newKey("r", job, ann), record(1, time.Now()))
				time.Sleep(endedKept)
				stop(o)
				time.Sleep(time.Second)
				o.forget()
				if err := next(job); !errors.Is(err, errStopped) {
					t.Errorf("the next session of the execution: %v", err)
				}
				if err := next(&attunev1.Job{Kind: job.GetKind(), Id: "another"}); err != nil {
					t.Errorf("another execution: %v", err)
				}
				time.Sleep(endedKept + time.Second)
				o.forget()
				if err := next(job); err != nil {
					t.Errorf("after more than a week: %v", err)
				}
			})
		})
	}
}
