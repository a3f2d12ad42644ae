// SPDX-License-Identifier: Apache-2.0

package link

import (
	"sync/atomic"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Losses counts what the Analyzer was not told, beside records: hits in aggregates,
// samples, and ends of processes. The zero value is ready; safe for use by several
// goroutines.
type Losses struct{ hits, samples, ends atomic.Uint64 }

// Add counts what a message carries that does not reach the Analyzer. Who lives is
// told again when there is one.
func (l *Losses) Add(message *attunev1.PublishRequest) {
	switch event := message.GetEvent().(type) {
	case *attunev1.PublishRequest_Aggregates:
		for _, a := range event.Aggregates.GetAggregates() {
			l.hits.Add(a.GetCount() + a.GetUnreadable())
		}
	case *attunev1.PublishRequest_Samples:
		l.samples.Add(uint64(len(event.Samples.GetSamples())))
	case *attunev1.PublishRequest_ProcessEnded:
		l.ends.Add(1)
	case *attunev1.PublishRequest_News:
		for _, one := range event.News.GetNews() {
			l.Add(one)
		}
	}
}

// Hits returns how many hits the aggregates stand for.
func (l *Losses) Hits() uint64 { return l.hits.Load() }

// Tell fills in what was lost so far.
func (l *Losses) Tell(status *attunev1.ControllerStatus) {
	status.HitsLost, status.SamplesLost, status.EndsLost = l.hits.Load(), l.samples.Load(), l.ends.Load()
}
