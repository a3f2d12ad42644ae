// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"sync"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// account is what the controller has received so far, and what was lost on the
// way to the Analyzer, by stage. The zero value is ready.
type account struct {
	mu  sync.Mutex // a leaf lock
	now totals
}

// totals are the sums of an account.
type totals struct {
	records    uint64
	probeNanos float64
	// lostRing, lostSlot, lostBPF and lostQueue are records that were lost in
	// rings, for want of a slot, in the kernel's ring after their process was
	// gone, and in the queue of the event channel or with its connection.
	lostRing, lostSlot, lostBPF, lostQueue uint64
	// away is what else did not reach the Analyzer.
	away away
}

// away are hits in aggregates, samples, and ends of processes.
type away struct{ hits, samples, ends uint64 }

// add adds what more there is.
func (a *account) add(more totals) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.now.records += more.records
	a.now.probeNanos += more.probeNanos
	a.now.lostRing += more.lostRing
	a.now.lostSlot += more.lostSlot
	a.now.lostBPF += more.lostBPF
	a.now.lostQueue += more.lostQueue
	a.now.away.hits += more.away.hits
	a.now.away.samples += more.away.samples
	a.now.away.ends += more.away.ends
}

func (a *account) sums() totals {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.now
}

// awayIn counts what a message carries beside records that does not reach the
// Analyzer with it. Who lives is told again when there is one.
func awayIn(message *attunev1.PublishRequest) (lost away) {
	switch event := message.GetEvent().(type) {
	case *attunev1.PublishRequest_Aggregates:
		for _, a := range event.Aggregates.GetAggregates() {
			lost.hits += a.GetCount() + a.GetUnreadable()
		}
	case *attunev1.PublishRequest_Samples:
		lost.samples = uint64(len(event.Samples.GetSamples()))
	case *attunev1.PublishRequest_ProcessEnded:
		lost.ends = 1
	case *attunev1.PublishRequest_News:
		for _, one := range event.News.GetNews() {
			if one.GetProcessEnded() != nil {
				lost.ends++
			}
		}
	}
	return lost
}
