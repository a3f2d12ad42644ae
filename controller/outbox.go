// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"sync"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// outbox holds news of processes back for a moment: what becomes known of a
// process meanwhile is told in one message instead of four, and the news of
// many processes leave together. Nothing else may name a process to the
// Analyzer before target.told is set. The mutex is held while news are sent,
// which keeps their order and may wait for the Analyzer.
type outbox struct {
	send func(*attunev1.PublishRequest)

	mu   sync.Mutex // guards news; taken before target.infoMu
	news []news
}

// news is that an image has started or, with ended, that it has ended.
type news struct {
	target *target
	ended  *attunev1.ProcessEnded
}

// add queues news and says whether they are the first.
func (o *outbox) add(n news) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.news = append(o.news, n)
	return len(o.news) == 1
}

// changed tells what is known of a process now, unless its start is still to
// be told, which will say it.
func (o *outbox) changed(t *target) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if t.told.Load() {
		o.send(&attunev1.PublishRequest{Event: &attunev1.PublishRequest_ProcessChanged{ProcessChanged: t.snapshot()}})
	}
}

// tellNow tells what is known of a process now, and is not put off.
func (o *outbox) tellNow(t *target) {
	if t.told.Load() {
		o.changed(t)
		return
	}
	o.flush()
}

// flush sends what is held back.
func (o *outbox) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, n := range o.news {
		o.tell(n)
	}
	clear(o.news)
	o.news = o.news[:0]
}

// tell sends one piece of news. The caller holds mu.
func (o *outbox) tell(n news) {
	if n.ended != nil {
		o.send(&attunev1.PublishRequest{Event: &attunev1.PublishRequest_ProcessEnded{ProcessEnded: n.ended}})
		return
	}
	o.send(&attunev1.PublishRequest{Event: &attunev1.PublishRequest_ProcessStarted{ProcessStarted: n.target.snapshot()}})
	n.target.told.Store(true)
}
