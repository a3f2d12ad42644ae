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

// An Analyzer that takes nothing does not keep the controller from ending,
// although what collects for it waits for room with its lock held.
func TestStopIsBoundedByItsContext(t *testing.T) {
	dir := t.TempDir()
	deaf, err := net.Listen("unix", filepath.Join(dir, "deaf.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer deaf.Close()
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
	message := &attunev1.PublishRequest{}
	for c.client.TryPublish(message, 0) {
	}
	locked, waited := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(waited)
		c.collector.mu.Lock()
		defer c.collector.mu.Unlock()
		close(locked)
		c.publish(message) // as collector.aggregate does
	}()
	<-locked
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		_ = c.Stop(ctx) // says that it was not given the time
	}()
	patience.Closed(t, "stop, with an analyzer that takes nothing", stopped)
	<-waited
	c.giveUp() // what Stop had no time for
	if !ends(t.Context(), &c.work) || !ends(t.Context(), &c.serve) {
		t.Error("goroutines are left")
	}
	if err := c.dispose(); err != nil {
		t.Error(err)
	}
}
