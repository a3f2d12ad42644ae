// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"testing"
	"time"

	"github.com/attune-hpc/attune/controller/bpf/uprobe"
	"github.com/attune-hpc/attune/controller/link"
	"github.com/attune-hpc/attune/controller/member"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// fixed finds the Analyzer at one address.
type fixed string

func (f fixed) Find(context.Context) (link.Peer, <-chan struct{}, error) {
	return link.Peer{Address: string(f)}, nil, nil
}

// roaming has a controller come back when its connection was lost.
func roaming(c *Config) { c.Analyzer = fixed(c.AnalyzerAddress) }

// TestLastCountsWhileTheAnalyzerIsAway: what a process counted that ends meanwhile
// is lost, and the Analyzer is told how much that was.
func TestLastCountsWhileTheAnalyzerIsAway(t *testing.T) {
	b := start(t, roaming)
	defer b.stop(t)
	b.sampleEvery(t, time.Hour)
	b.addPoint(t, 3, call("own_work", false))
	target := targets.Start(t, targets.Build(t, "testdata/calls.c"), b.controller.Environment()...)
	process := b.withDMLib(t, target.PID)
	b.placed(t, 3)
	b.delivered(t)
	b.hide()
	target.Ask(t, "1000")
	if err := target.End(t); err != nil {
		t.Fatal(err)
	}
	patience.Until(t, "the controller knows of the end", func() bool {
		return b.controller.losses.Hits() >= 1000
	})
	b.show(t)
	event(t, b, "end of the process", func(m *attunev1.PublishRequest) (bool, bool) {
		return true, m.GetProcessEnded().GetProcess() == process.GetHandle()
	})
	for {
		if status := patience.Receive(t, "status", b.answers).GetStatus(); status != nil {
			if status.GetHitsLost() != 1000 || status.GetEndsLost() != 0 {
				t.Errorf("%d hits and %d ends are lost, want 1000 and none", status.GetHitsLost(), status.GetEndsLost())
			}
			return
		}
	}
}

// TestRecordsThatWereReturned: the next batch of their process tells of them, and
// of what they told.
func TestRecordsThatWereReturned(t *testing.T) {
	b := start(t)
	defer b.stop(t)
	c := b.controller
	living := member.New(processOf(1<<40), member.Options{})
	living.Tell()
	c.members.Add(living)
	c.undelivered(&attunev1.PublishRequest{Event: &attunev1.PublishRequest_Records{Records: &attunev1.RecordBatch{
		Process: living.Handle(), RecordCount: 7, Records: make([]byte, 7*32), LostRing: 1, LostBpf: 2, LostQueue: 3,
	}}})
	c.uprobeRecords(uprobe.Batch{Process: uint32(living.PID()), Records: make([]byte, 32)})
	batch := event(t, b, "records", func(m *attunev1.PublishRequest) (*attunev1.RecordBatch, bool) {
		return m.GetRecords(), m.GetRecords().GetProcess() == living.Handle()
	})
	if batch.GetLostRing() != 1 || batch.GetLostBpf() != 2 || batch.GetLostQueue() != 10 {
		t.Errorf("the next batch tells of %v", batch)
	}
}

// TestRecordsComeAfterTheNews of their process, however early they are, and before
// its end.
func TestRecordsComeAfterTheNews(t *testing.T) {
	b := start(t)
	defer b.stop(t)
	c := b.controller
	early := member.New(processOf(1<<40), member.Options{})
	c.members.Add(early)
	c.outbox.Started(early)
	c.uprobeRecords(uprobe.Batch{Process: uint32(early.PID()), Records: make([]byte, 2*32), Hits: 2})
	(&follower{c}).Ended(&attunev1.ProcessEnded{Process: early.Handle()})
	c.uprobeRecords(uprobe.Batch{Process: uint32(early.PID()), Records: make([]byte, 3*32), Hits: 3})
	c.outbox.Flush()
	var order []string
	event(t, b, "end of the process", func(m *attunev1.PublishRequest) (bool, bool) {
		switch {
		case m.GetProcessStarted().GetHandle() == early.Handle():
			order = append(order, "start")
		case m.GetRecords().GetProcess() == early.Handle():
			order = append(order, "records")
		}
		return true, m.GetProcessEnded().GetProcess() == early.Handle()
	})
	if len(order) != 2 || order[0] != "start" || order[1] != "records" {
		t.Errorf("before its end came %q, want its start and its records", order)
	}
	if lost := c.account.sums().lostBPF; lost != 3 {
		t.Errorf("%d records of a process that is gone are counted, want 3", lost)
	}
}

// TestSamplesComeBeforeAggregates of the same round.
func TestSamplesComeBeforeAggregates(t *testing.T) {
	b := start(t)
	defer b.stop(t)
	target := targets.Start(t, targets.Build(t, "testdata/storm.c"), b.controller.Environment()...)
	b.withDMLib(t, target.PID)
	b.addPoint(t, 3, &attunev1.MeasurePoint{Id: "malloc", Target: &attunev1.MeasurePoint_Hook{Hook: "malloc"}})
	b.placed(t, 3)
	b.sampleEvery(t, time.Hour)
	event(t, b, "samples", func(m *attunev1.PublishRequest) (bool, bool) {
		if m.GetAggregates() != nil {
			t.Error("aggregates come before the samples")
		}
		return true, m.GetSamples() != nil
	})
	event(t, b, "aggregates", func(m *attunev1.PublishRequest) (bool, bool) { return true, m.GetAggregates() != nil })
}

// processOf is a process that no machine has.
func processOf(handle uint64) *attunev1.Process {
	return &attunev1.Process{Handle: handle, Identity: &attunev1.ProcessIdentity{Pid: 1 << 22}}
}
