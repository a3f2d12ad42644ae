// SPDX-License-Identifier: Apache-2.0

package main

import (
	"sync/atomic"
	"time"

	"github.com/attune-hpc/attune/proto/attune/series"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// measured makes what a controller sends: a function that returns the message of a
// time, nil where there is none, and how long it is until the next one.
type measured func(*controller) func(now time.Time) (*attunev1.PublishRequest, time.Duration)

// aggregates are those of the points that a controller was asked for, of each
// interval.
func aggregates(c *controller) func(time.Time) (*attunev1.PublishRequest, time.Duration) {
	return func(now time.Time) (*attunev1.PublishRequest, time.Duration) {
		c.mu.Lock()
		defer c.mu.Unlock()
		b := &attunev1.AggregateBatch{FromUnixNano: now.Add(-interval).UnixNano(), ToUnixNano: now.UnixNano()}
		for _, p := range c.points {
			for handle := 1; handle <= c.load.processes; handle++ {
				b.Aggregates = append(b.Aggregates, &attunev1.Aggregate{Point: p, Process: uint64(handle), Count: 100, Sum: 4096, Min: 8, Max: 64})
			}
		}
		return &attunev1.PublishRequest{Event: &attunev1.PublishRequest_Aggregates{Aggregates: b}}, interval
	}
}

// programs are what samples tell of: processes that compute on one core, and have
// every symptom that a signal shows while something is wrong, which is so in one
// session after the other.
type programs struct {
	sessions int
	began    atomic.Int64 // when something was wrong in the first, Unix nanoseconds; 0: never
}

// goWrong has something be wrong in each session once from now on.
func (p *programs) goWrong() { p.began.Store(time.Now().UnixNano()) }

// wrong says whether something is wrong in the session of a controller.
func (p *programs) wrong(c *controller, now time.Time) bool {
	began := p.began.Load()
	turn := time.Duration(c.number) * wrongOver / time.Duration(p.sessions)
	since := time.Duration(now.UnixNano()-began) - turn
	return began != 0 && since >= 0 && since < wrongFor
}

// rate is by how much a counter rises in a second.
type rate struct {
	signal series.ID
	calm   float64
	wrong  float64
}

// rates are those of a program: what wakes the tunlets of the catalogue is reached
// while something is wrong, and else nothing of it.
func rates() []rate {
	const core = float64(time.Second)
	return []rate{
		{series.CPUUser, 0.25 * core, 0.5 * core}, {series.CPUSystem, 0, 0.5 * core},
		{series.RunTime, 0.25 * core, core}, {series.RunqueueWait, 0, 3 * core},
		{series.MinorFaults, 1, 100_000}, {series.MajorFaults, 0, 0},
		{series.VoluntarySwitches, 1, 50_000}, {series.InvoluntarySwitches, 1, 100},
		{series.ReadCalls, 1, 50_000}, {series.WriteCalls, 1, 50_000},
		{series.ReadBytes, 1e3, 5e9}, {series.WrittenBytes, 1e3, 5e9},
	}
}

// samples are those of each process of a controller, at the period that it was
// asked for.
func (p *programs) samples(c *controller) func(time.Time) (*attunev1.PublishRequest, time.Duration) {
	counters := map[series.ID]float64{}
	var last time.Time
	return func(now time.Time) (*attunev1.PublishRequest, time.Duration) {
		c.mu.Lock()
		period := c.period
		c.mu.Unlock()
		passed := now.Sub(last).Seconds()
		if last.IsZero() {
			passed = 0
		}
		last = now
		readings := []series.Reading{
			{ID: series.ResidentBytes, Value: 100 << 20}, {ID: series.Threads, Value: 2},
			{ID: series.RunnableThreads, Value: 1}, {ID: series.CPUsAllowed, Value: 1},
		}
		for _, r := range rates() {
			each := r.calm
			if p.wrong(c, now) {
				each = r.wrong
			}
			counters[r.signal] += each * passed
			readings = append(readings, series.Reading{ID: r.signal, Value: uint64(counters[r.signal])})
		}
		if period == 0 {
			return nil, interval
		}
		b := &attunev1.SampleBatch{UnixNano: now.UnixNano()}
		for handle := 1; handle <= c.load.processes; handle++ {
			tables := []*attunev1.Table{series.SignalTable(readings...)}
			b.Samples = append(b.Samples, &attunev1.Sample{Process: uint64(handle), Tables: tables})
		}
		return &attunev1.PublishRequest{Event: &attunev1.PublishRequest_Samples{Samples: b}}, period
	}
}
