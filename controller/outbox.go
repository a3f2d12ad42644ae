// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"sync"

	"github.com/attune-hpc/attune/controller/member"
	"github.com/attune-hpc/attune/internal/queue"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	// maxNews bounds the news that wait for an Analyzer.
	maxNews = 8192
	// batchOfNews is how many news go in one message at most: of a process with
	// hundreds of libraries they have some 20 kB.
	batchOfNews = 64
)

// outbox holds news of processes back for a moment: what becomes known of a
// process meanwhile is told in one message instead of four, and the news of
// many processes leave together. Nothing else may name a process to the
// Analyzer before target.told is set. The mutex is held while news are sent,
// which keeps their order and may wait for the Analyzer.
//
// While there is no Analyzer news are kept, and the next one is told of all
// that lives and of what has ended meanwhile.
type outbox struct {
	send  func(*attunev1.PublishRequest)
	heard func(*member.Member)           // the Analyzer knows of it from now on
	lose  func(*attunev1.PublishRequest) // counts what nobody can be told any more

	mu     sync.Mutex // guards what follows; taken before target.infoMu
	news   *queue.Queue[news]
	silent bool // there is no Analyzer
}

func newOutbox() *outbox { return &outbox{news: queue.New[news](maxNews)} }

// news is that an image has started or, with ended, that it has ended.
type news struct {
	target *member.Member
	ended  *attunev1.ProcessEnded
}

// add queues news and says whether they are the first.
func (o *outbox) add(n news) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.silent && o.news.Len() == maxNews {
		o.tellAll()
	}
	for _, dropped := range o.news.Push(n) {
		if dropped.ended != nil { // else it lives, and is told
			o.lose(dropped.message())
		}
	}
	return o.news.Len() == 1
}

// changed tells what is known of a process now, unless its start is still to
// be told, which will say it.
func (o *outbox) changed(t *member.Member) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if t.Told() {
		o.send(changeOf(t))
	}
}

// tellNow tells what is known of a process now, and is not put off.
func (o *outbox) tellNow(t *member.Member) {
	if t.Told() {
		o.changed(t)
		return
	}
	o.flush()
}

// flush sends what is held back.
func (o *outbox) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.silent {
		o.tellAll()
	}
}

// tellAll sends all that is held back. The caller holds mu.
func (o *outbox) tellAll() {
	for batch := range slices.Chunk(o.news.Drain(), batchOfNews) {
		o.tell(batch)
	}
}

// tell sends news. The caller holds mu.
func (o *outbox) tell(batch []news) {
	messages := make([]*attunev1.PublishRequest, len(batch))
	for i, n := range batch {
		messages[i] = n.message()
	}
	if len(messages) == 1 {
		o.send(messages[0])
	} else {
		o.send(&attunev1.PublishRequest{Event: &attunev1.PublishRequest_News{News: &attunev1.NewsBatch{News: messages}}})
	}
	for _, n := range batch {
		if n.ended == nil {
			n.target.Tell()
			o.heard(n.target)
		}
	}
}

func (n news) message() *attunev1.PublishRequest {
	if n.ended != nil {
		return endOf(n.ended)
	}
	return startOf(n.target)
}

func startOf(t *member.Member) *attunev1.PublishRequest {
	if t.Known() {
		return changeOf(t)
	}
	return &attunev1.PublishRequest{Event: &attunev1.PublishRequest_ProcessStarted{ProcessStarted: t.Snapshot()}}
}

func changeOf(t *member.Member) *attunev1.PublishRequest {
	return &attunev1.PublishRequest{Event: &attunev1.PublishRequest_ProcessChanged{ProcessChanged: t.Snapshot()}}
}

func endOf(ended *attunev1.ProcessEnded) *attunev1.PublishRequest {
	return &attunev1.PublishRequest{Event: &attunev1.PublishRequest_ProcessEnded{ProcessEnded: ended}}
}

// hush notes that there is no Analyzer: none knows of any process.
func (o *outbox) hush(living []*member.Member) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.silent = true
	for _, t := range living {
		t.Hush()
	}
}

// retell tells an Analyzer of all that lives, and of what has ended since there
// was none, and has it told the rest from then on by open. What is left when send
// fails is for the next one.
func (o *outbox) retell(living []*member.Member, send func(*attunev1.PublishRequest) error, open func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	held := o.news.Drain()
	if !retellAll(living, held, send) {
		o.news.Return(held)
		return
	}
	o.silent = false
	open()
	for _, t := range living {
		o.heard(t)
	}
}

// retellAll sends what an Analyzer has to know, and says whether it could.
func retellAll(living []*member.Member, held []news, send func(*attunev1.PublishRequest) error) bool {
	for _, t := range living {
		if send(startOf(t)) != nil {
			return false
		}
		t.Tell()
	}
	for _, n := range held {
		if n.ended == nil {
			continue // lives and is told, or has ended and is told below
		}
		if !n.target.Told() && send(startOf(n.target)) != nil || send(endOf(n.ended)) != nil {
			return false
		}
	}
	return true
}
