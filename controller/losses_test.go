// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"slices"
	"testing"
	"time"

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
	patience.Until(t, "the controller misses the Analyzer", func() bool {
		return !slices.ContainsFunc(b.controller.members.List(), (*member.Member).Told)
	})
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
