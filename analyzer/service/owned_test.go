// SPDX-License-Identifier: Apache-2.0

package service

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/attune-hpc/attune/internal/registry"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestWaitsForOwnership has a controller come when the registry names this
// Analyzer already, which still reads what there was before.
func TestWaitsForOwnership(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own := &attunev1.AnalyzerRecord{Id: "a"}
		s := newTable("a")
		s.see(registry.View{Owners: map[string]*attunev1.OwnerRecord{"r": {Analyzer: own}}})
		routed := make(chan error, 1)
		go func() { routed <- s.awaitOwnership(t.Context(), "r", routePatience) }()
		synctest.Wait()
		if !s.enter(newOwned("r", nil)) {
			t.Fatal("not entered")
		}
		if err := <-routed; err != nil {
			t.Errorf("the controller was told: %v", err)
		}
	})
}

// TestForgetsWhatHasEnded: a session's id is not given twice while the registry
// knows it, and is then forgotten.
func TestForgetsWhatHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &claims{table: newTable("a")}
		r, o := &attunev1.Registration{Id: "r"}, newOwned("r", nil)
		first := o.next(r, job, nil)
		first.EndedUnixNano = time.Now().UnixNano()
		o.end(first)
		if second := o.next(r, job, nil); second.GetId() == first.GetId() {
			t.Errorf("%s is given twice", second.GetId())
		}
		time.Sleep(endedKept + time.Second)
		c.tidy(t.Context(), o)
		if len(o.ended) != 0 || len(o.past) != 0 {
			t.Errorf("kept: %v, %v", o.ended, o.past)
		}
	})
}
