// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/attune-hpc/attune/controller/member"
	"github.com/attune-hpc/attune/controller/source"
	"github.com/attune-hpc/attune/internal/beat"
	"github.com/attune-hpc/attune/internal/queue"
	"github.com/attune-hpc/attune/proto/attune/series"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// sampling is the clock of what is read periodically: signals, details beside them,
// and aggregates.
type sampling struct {
	members    *member.Set
	details    *detailing
	aggregates *aggregates
	publish    func(*attunev1.PublishRequest)

	period  atomic.Int64 // of samples, nanoseconds, 0: none
	changed queue.Bell   // rung when a period, or what is to be read, changes
}

// set says how often signals are read and aggregates closed from now on; 0: not at
// all.
func (s *sampling) set(period time.Duration) {
	s.period.Store(int64(period))
	s.aggregates.setInterval(period)
	s.changed.Ring()
}

// want replaces which details are read.
func (s *sampling) want(wants []*attunev1.TableWant) {
	s.details.set(wants)
	s.changed.Ring()
}

// run samples signals and closes intervals of aggregates at the periods that the
// Analyzer asked for.
func (s *sampling) run(ctx context.Context) error {
	const never = time.Hour // until the Analyzer asks for some, which wakes it
	var samples due
	timer := time.NewTimer(never)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.changed:
		case <-timer.C:
		}
		s.details.sources.Keep(s.wanted)
		now := time.Now()
		if samples.is(now, time.Duration(s.period.Load())) {
			s.sampleAll() // before the aggregates: who sees a symptom judges these by it
		}
		closing := s.aggregates.closeDue(now)
		timer.Reset(time.Until(beat.Earliest(now.Add(never), samples.next, closing)))
	}
}

// wanted returns which details of a process are wanted; none of one that is no member.
func (s *sampling) wanted(handle uint64) []series.TableID {
	if s.members.Get(handle) == nil {
		return nil
	}
	return s.details.of(handle)
}

// sampleAll reads the signals of every process, and what is wanted beside.
func (s *sampling) sampleAll() {
	batch := &attunev1.SampleBatch{UnixNano: time.Now().UnixNano()}
	room := source.NewRoom(detailsPerRound)
	inTurn := s.details.inTurn(s.members.List())
	s.details.next = 0
	for _, t := range inTurn {
		if !t.Alive() || !t.Told() || t.OutOfReach() != nil {
			continue
		}
		if sample := s.details.read(t, room); sample != nil {
			batch.Samples = append(batch.Samples, sample)
		}
	}
	if len(batch.GetSamples()) > 0 {
		s.publish(&attunev1.PublishRequest{Event: &attunev1.PublishRequest_Samples{Samples: batch}})
	}
}
