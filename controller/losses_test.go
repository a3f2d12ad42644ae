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

// TestLastCountsWhileTheAnalyzerIsAway: what a process counted that ends about the time
// at which the Analyzer does is lost, and the next one is told how much that was; of the
// end either, or what it was.
func TestLastCountsWhileTheAnalyzerIsAway(t *testing.T) {
	missed := func(t *testing.T, b *bench) {
		patience.Until(t, "the controller misses the Analyzer", func() bool {
			return !slices.ContainsFunc(b.controller.members.List(), (*member.Member).Told)
		})
	}
	tests := []struct {
		name          string
		before, after func(*testing.T, *bench) // the last counts
		ends          func(lost uint64) bool
	}{
		{
			"the controller knows that it is", func(t *testing.T, b *bench) { b.hide(); missed(t, b) },
			func(*testing.T, *bench) {}, func(lost uint64) bool { return lost == 0 },
		},
		{
			"the controller may not know yet", func(_ *testing.T, b *bench) { b.hide() },
			func(*testing.T, *bench) {}, func(lost uint64) bool { return lost <= 1 },
		},
		{
			"it dies with them in its hands", func(_ *testing.T, b *bench) { b.dying.Store(true) },
			func(t *testing.T, b *bench) { b.dies(t, 1000) }, func(lost uint64) bool { return lost == 1 },
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := start(t, roaming)
			defer b.stop(t)
			b.sampleEvery(t, time.Hour)
			b.addPoint(t, 3, call("own_work", false))
			target := targets.Start(t, targets.Build(t, "testdata/calls.c"), b.controller.Environment()...)
			process := b.withDMLib(t, target.PID)
			b.placed(t, 3)
			b.delivered(t)
			test.before(t, b)
			target.Ask(t, "1000")
			target.EndWell(t)
			test.after(t, b)
			patience.Until(t, "the controller counts what is lost", func() bool {
				return b.controller.losses.Hits() >= 1000
			})
			for len(b.answers) > 0 {
				<-b.answers // of before
			}
			b.show(t)
			for {
				status := patience.Receive(t, "status", b.answers).GetStatus()
				if status == nil {
					continue
				}
				if status.GetHitsLost() != 1000 || !test.ends(status.GetEndsLost()) {
					t.Errorf("%d hits and %d ends are lost, want 1000", status.GetHitsLost(), status.GetEndsLost())
				}
				if status.GetEndsLost() == 0 {
					event(t, b, "end of the process", func(m *attunev1.PublishRequest) (bool, bool) {
						return true, m.GetProcessEnded().GetProcess() == process.GetHandle()
					})
				}
				return
			}
		})
	}
}

// dies takes the Analyzer away as soon as it has received so many hits, and an end, and
// taken none of them.
func (b *bench) dies(t *testing.T, hits uint64) {
	t.Helper()
	for ended, got := false, uint64(0); !ended || got < hits; {
		m := patience.Receive(t, "a message of the last ones", b.untaken)
		for _, a := range m.GetAggregates().GetAggregates() {
			got += a.GetCount()
		}
		ended = ended || m.GetProcessEnded() != nil
	}
	b.hide()
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
