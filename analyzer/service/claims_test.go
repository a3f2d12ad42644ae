// SPDX-License-Identifier: Apache-2.0

package service

import (
	"log/slog"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/registry"
	"github.com/attune-hpc/attune/internal/testing/patience"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestLeaseLostBeforeTheView: sessions end with their registration although no view has
// told yet that it is gone, and are left to another Analyzer that has it.
func TestLeaseLostBeforeTheView(t *testing.T) {
	remove := func(c *registry.Client) error { return c.DeleteRegistration(t.Context(), "r") }
	for _, tt := range []struct {
		name  string
		lose  func(own, other *registry.Client) error
		leave bool
	}{
		{"taken back here", func(own, _ *registry.Client) error { return remove(own) }, false},
		{"taken back elsewhere", func(_, other *registry.Client) error { return remove(other) }, false},
		{"another has it", func(_, other *registry.Client) error { _, err := claimAs(t, other, 2); return err }, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlace(t)
			own, other := p.connect(), p.connect()
			if err := own.PutRegistration(t.Context(), &attunev1.Registration{Id: "r", Executable: "solver"}); err != nil {
				t.Fatal(err)
			}
			lease, err := claimAs(t, own, 1)
			if err != nil {
				t.Fatal(err)
			}
			c := &claims{table: newTable("a"), registry: own, log: slog.New(slog.DiscardHandler), patience: time.Hour}
			h := &hosted{key: key{registration: "r"}, ends: make(chan ending, 1)}
			o := newOwned("r", lease)
			c.table.hosted[h.key] = h
			c.table.enter(o)
			held := make(chan struct{})
			go func() { defer close(held); c.hold(t.Context(), o) }()
			if err := tt.lose(own, other); err != nil {
				t.Fatal(err)
			}
			if e := patience.Receive(t, "an end", h.ends); e.leave != tt.leave {
				t.Errorf("the session ends as %+v", e)
			}
			patience.Closed(t, "the registration is let go", held)
		})
	}
}

// claimAs claims the registration r for the Analyzer a, started for the nth time.
func claimAs(t *testing.T, c *registry.Client, nth int64) (*registry.Lease, error) {
	t.Helper()
	record := &attunev1.AnalyzerRecord{Id: "a", Host: "host-a", StartedUnixNano: nth}
	if _, err := c.Announce(t.Context(), record, nil); err != nil {
		return nil, err
	}
	return c.Claim(t.Context(), "r")
}
