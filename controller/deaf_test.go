// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/testing/patience"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// deafened is a controller whose Analyzer takes nothing, and whose queue is full.
func deafened(t *testing.T) *Controller {
	t.Helper()
	dir := t.TempDir()
	deaf, err := net.Listen("unix", filepath.Join(dir, "deaf.sock"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { deaf.Close() })
	c, err := New(Config{
		AnalyzerAddress: "unix:" + deaf.Addr().String(), GatePath: filepath.Join(dir, "gate", "g.sock"),
		StateDir: filepath.Join(dir, "state"), JobID: t.Name(),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	for c.client.TryPublish(&attunev1.PublishRequest{}) {
	}
	return c
}

// stopDeafened stops it in the time that an impatient owner gives.
func stopDeafened(t *testing.T, c *Controller) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- c.Stop(ctx) }()
	if err := patience.Receive(t, "stop, with an analyzer that takes nothing", stopped); err == nil {
		return
	}
	c.giveUp() // what Stop had no time for
	if !ends(t.Context(), &c.work.group) || !ends(t.Context(), &c.serve) {
		t.Error("goroutines are left")
	}
	if err := c.dispose(); err != nil {
		t.Error(err)
	}
}

// An Analyzer that takes nothing keeps the controller from ending no longer than its
// owner allows, although aggregates wait for room. They are lost, and counted.
func TestAnalyzerThatTakesNothing(t *testing.T) {
	c := deafened(t)
	waited := make(chan struct{})
	go func() {
		defer close(waited)
		c.publish(&attunev1.PublishRequest{Event: &attunev1.PublishRequest_Aggregates{
			Aggregates: &attunev1.AggregateBatch{Aggregates: []*attunev1.Aggregate{{Count: 3, Unreadable: 1}}},
		}})
	}()
	c.sendStatus()
	stopDeafened(t, c)
	<-waited
	if lost := c.losses.Hits(); lost != 4 {
		t.Errorf("%d hits are lost with what waited, want 4", lost)
	}
}
