// SPDX-License-Identifier: Apache-2.0

package link

import (
	"sync/atomic"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Loss is what is lost with a message that does not reach the Analyzer. Who lives is
// told again when there is one, and no loss.
type Loss struct {
	// Hits that aggregates stand for, samples, and ends of processes.
	Hits, Samples, Ends uint64
	// Records, and by process the word of those that were lost before them. Process is 0
	// if they are of several.
	Records, Process             uint64
	LostRing, LostQueue, LostBPF uint64
}

// LossOf returns what is lost with a message.
func LossOf(message *attunev1.PublishRequest) (l Loss) {
	switch event := message.GetEvent().(type) {
	case *attunev1.PublishRequest_Records:
		b := event.Records
		l.Process, l.Records = b.GetProcess(), b.GetRecordCount()
		l.LostRing, l.LostQueue, l.LostBPF = b.GetLostRing(), b.GetLostQueue(), b.GetLostBpf()
	case *attunev1.PublishRequest_Aggregates:
		for _, a := range event.Aggregates.GetAggregates() {
			l.Hits += a.GetCount() + a.GetUnreadable()
		}
	case *attunev1.PublishRequest_Samples:
		l.Samples = uint64(len(event.Samples.GetSamples()))
	case *attunev1.PublishRequest_ProcessEnded:
		l.Ends = 1
	case *attunev1.PublishRequest_News:
		for _, one := range event.News.GetNews() {
			l = l.plus(LossOf(one))
		}
	}
	return l
}

// plus returns the loss of two messages together, without what is told by process only:
// that was counted before, when it was lost.
func (l Loss) plus(m Loss) Loss {
	return Loss{Hits: l.Hits + m.Hits, Samples: l.Samples + m.Samples, Ends: l.Ends + m.Ends, Records: l.Records + m.Records}
}

// Batch returns the records that are lost as a batch without them; nil: the message had
// none.
func (l Loss) Batch() *attunev1.RecordBatch {
	if l.Records == 0 && l.Process == 0 {
		return nil
	}
	return &attunev1.RecordBatch{
		Process: l.Process, RecordCount: l.Records, LostRing: l.LostRing, LostQueue: l.LostQueue, LostBpf: l.LostBPF,
	}
}

// Losses counts what the Analyzer was not told, beside records: hits in aggregates,
// samples, and ends of processes. The zero value is ready; safe for use by several
// goroutines.
type Losses struct{ hits, samples, ends atomic.Uint64 }

// Add counts what did not reach the Analyzer.
func (l *Losses) Add(loss Loss) {
	l.hits.Add(loss.Hits)
	l.samples.Add(loss.Samples)
	l.ends.Add(loss.Ends)
}

// Hits returns how many hits the aggregates stand for.
func (l *Losses) Hits() uint64 { return l.hits.Load() }

// Tell fills in what was lost so far.
func (l *Losses) Tell(status *attunev1.ControllerStatus) {
	status.HitsLost, status.SamplesLost, status.EndsLost = l.hits.Load(), l.samples.Load(), l.ends.Load()
}
