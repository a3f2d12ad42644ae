// SPDX-License-Identifier: Apache-2.0

package service

import (
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
		o.end(first)
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
