// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"log/slog"
	"sync"
	"testing"

	"github.com/attune-hpc/attune/controller/member"
	"github.com/attune-hpc/attune/controller/probe"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestNeedIsTriedOnce: however many points ask for DMLib in a process, one
// goroutine tries to bring it in, and all are answered.
func TestNeedIsTriedOnce(t *testing.T) {
	placer := probe.New(probe.Options{Status: func(*attunev1.PointStatus) {}})
	defer placer.Close()
	placer.Add(1, new(attunev1.MeasurePoint))
	var work sync.WaitGroup
	tries := 0
	l := &library{entering: new(entering), ways: ways{&Options{
		LateLibrary: true, Context: t.Context(), Placer: placer, Go: func(try func()) { tries++; work.Go(try) }, Log: slog.New(slog.DiscardHandler),
	}}}
	process := member.New(&attunev1.Process{Handle: 1}, member.Options{})
	l.entering.bringing.Make = newBringing
	bringing := l.entering.bringing.Of(process)
	<-bringing.once // nobody can try
	l.need(process)
	l.need(process)
	l.need(process)
	if tries != 1 {
		t.Errorf("%d goroutines try, want one", tries)
	}
	if asked := bringing.asked.Load(); asked != 3 {
		t.Errorf("%d wait for an answer, want 3", asked)
	}
	bringing.done = true
	bringing.once <- struct{}{}
	work.Wait()
	if asked := bringing.asked.Load(); asked != 0 {
		t.Errorf("%d wait for an answer at the end", asked)
	}
}
