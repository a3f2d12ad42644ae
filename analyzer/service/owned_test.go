// SPDX-License-Identifier: Apache-2.0

package service

import (
	"testing"
	"testing/synctest"

	"github.com/attune-hpc/attune/internal/registry"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestWaitsForOwnership has a controller come when the registry names this
// Analyzer already, which still reads what there was before.
func TestWaitsForOwnership(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own := &attunev1.AnalyzerRecord{Id: "a"}
		s := &Service{
			cfg: Config{Record: own}, viewed: make(chan struct{}), owned: make(map[string]*owned),
			view: registry.View{Owners: map[string]*attunev1.OwnerRecord{"r": {Analyzer: own}}},
		}
		routed := make(chan error, 1)
		go func() { routed <- s.awaitOwnership(t.Context(), "r") }()
		synctest.Wait()
		if !s.enter(&owned{id: "r"}) {
			t.Fatal("not entered")
		}
		if err := <-routed; err != nil {
			t.Errorf("the controller was told: %v", err)
		}
	})
}
