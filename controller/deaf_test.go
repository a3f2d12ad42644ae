// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/attune-hpc/attune/controller/bpf/uprobe"
	"github.com/attune-hpc/attune/controller/member"
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
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		_ = c.Stop(ctx) // says that it was not given the time
	}()
	patience.Closed(t, "stop, with an analyzer that takes nothing", stopped)
	c.giveUp() // what Stop had no time for
	if !ends(t.Context(), &c.work) || !ends(t.Context(), &c.serve) {
		t.Error("goroutines are left")
	}
	if err := c.dispose(); err != nil {
		t.Error(err)
	}
}

// An Analyzer that takes nothing keeps the controller neither from emptying rings,
// nor from accounting for itself, nor from ending, although aggregates wait for
// room with their lock held.
func TestAnalyzerThatTakesNothing(t *testing.T) {
	c := deafened(t)
	waited := make(chan struct{})
	locked := make(chan struct{})
	go func() {
		defer close(waited)
		c.aggregates.mu.Lock()
		defer c.aggregates.mu.Unlock()
		close(locked)
		c.aggregates.deliver(&attunev1.AggregateBatch{Aggregates: []*attunev1.Aggregate{{Count: 3, Unreadable: 1}}})
	}()
	<-locked
	unknown := member.New(processOf(1), member.Options{})
	c.members.Add(unknown)
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.outbox.Started(unknown)
		c.records.drain()
		c.uprobeRecords(uprobe.Batch{Process: uint32(unknown.PID()), Records: make([]byte, 32), Hits: 1})
		c.sendStatus()
	}()
	patience.Closed(t, "rings, beside aggregates that wait for room", done)
	if !c.records.holds(unknown) {
		t.Error("records of a process that nobody was told of are gone")
	}
	stopDeafened(t, c)
	<-waited
	if lost := c.losses.Hits(); lost != 4 {
		t.Errorf("%d hits are lost with what waited, want 4", lost)
	}
}
