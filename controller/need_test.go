// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"log/slog"
	"runtime"
	"testing"

	"github.com/attune-hpc/attune/controller/member"
	"github.com/attune-hpc/attune/controller/probe"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestNeedIsTriedOnce: however many points ask for DMLib in a process, one
// goroutine tries to bring it in, and all are answered.
func TestNeedIsTriedOnce(t *testing.T) {
	c := &Controller{config: Config{LateLibrary: true}, log: slog.New(slog.DiscardHandler)}
	c.ctx, c.cancel = t.Context(), func() {}
	c.placer = probe.New(probe.Options{Status: func(*attunev1.PointStatus) {}})
	defer c.placer.Close()
	c.placer.Add(1, new(attunev1.MeasurePoint))
	process := member.New(&attunev1.Process{Handle: 1}, member.Options{})
	c.bringing.Make = newBringing
	bringing := c.bringing.Of(process)
	<-bringing.once // nobody can try
	before := runtime.NumGoroutine()
	c.need(process)
	c.need(process)
	c.need(process)
	if more := runtime.NumGoroutine() - before; more > 1 {
		t.Errorf("%d goroutines try, want one", more)
	}
	if asked := bringing.asked.Load(); asked != 3 {
		t.Errorf("%d wait for an answer, want 3", asked)
	}
	bringing.done = true
	bringing.once <- struct{}{}
	c.work.Wait()
	if asked := bringing.asked.Load(); asked != 0 {
		t.Errorf("%d wait for an answer at the end", asked)
	}
}
