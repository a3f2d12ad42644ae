// SPDX-License-Identifier: Apache-2.0

package link

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

// Outbox holds news of processes back for a moment: what becomes known of a
// process meanwhile is told in one message instead of four, and the news of
// many processes leave together. Nobody else names a process to the Analyzer before
// its start was told. The mutex is held while news are sent, which keeps their order
// and may wait for the Analyzer.
//
// While there is no Analyzer news are kept, and the next one is told of all
// that lives and of what has ended meanwhile.
type Outbox struct {
	options OutboxOptions

	mu     sync.Mutex // guards what follows; taken before those of members
	news   *queue.Queue[news]
	silent bool // there is no Analyzer
	// told are the members that the Analyzer knows of, and whose end it was not told. They
	// are more than live: the end of some is on its way here.
	told map[*member.Member]struct{}
}

// OutboxOptions say where news go.
type OutboxOptions struct {
	// Send takes a message to the Analyzer. It may wait for it.
	Send func(*attunev1.PublishRequest)
	// Heard is called when the Analyzer knows of a process from now on, with the
	// Outbox' lock held.
	Heard func(*member.Member)
	// Living lists the members. It is called with the Outbox' lock held, so that no news
	// come between the list and what is told. Needed where there may be no Analyzer.
	Living func() []*member.Member
	// Undelivered counts what nobody can be told any more.
	Undelivered func(Loss)
	// Silent says that there is no Analyzer yet.
	Silent bool
}

// NewOutbox returns an empty Outbox.
func NewOutbox(options OutboxOptions) *Outbox {
	return &Outbox{options: options, news: queue.New[news](maxNews), silent: options.Silent, told: make(map[*member.Member]struct{})}
}

// news is that an image has started or, with ended, that it has ended.
type news struct {
	member *member.Member
	ended  *attunev1.ProcessEnded
}

// Started queues the news that an image has started, and says whether they are the
// first.
func (o *Outbox) Started(m *member.Member) bool { return o.add(news{member: m}) }

// Ended queues the news that an image has ended, and says whether they are the
// first.
func (o *Outbox) Ended(m *member.Member, ended *attunev1.ProcessEnded) bool {
	return o.add(news{member: m, ended: ended})
}

func (o *Outbox) add(n news) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.silent && o.news.Len() == maxNews {
		o.tellAll()
	}
	for _, dropped := range o.news.Push(n) {
		if dropped.ended != nil { // else it lives, and is told
			o.options.Undelivered(LossOf(dropped.message()))
		}
	}
	return o.news.Len() == 1
}

// Changed tells what is known of a process now, unless its start is still to
// be told, which will say it.
func (o *Outbox) Changed(m *member.Member) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if m.Told() {
		o.options.Send(changeOf(m))
	}
}

// TellNow tells what is known of a process now, and is not put off.
func (o *Outbox) TellNow(m *member.Member) {
	if m.Told() {
		o.Changed(m)
		return
	}
	o.Flush()
}

// Flush sends what is held back.
func (o *Outbox) Flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.silent {
		o.tellAll()
	}
}

// tellAll sends all that is held back. The caller holds mu.
func (o *Outbox) tellAll() {
	for batch := range slices.Chunk(o.news.Drain(), batchOfNews) {
		o.tell(batch)
	}
}

// tell sends news. The caller holds mu.
func (o *Outbox) tell(batch []news) {
	messages := make([]*attunev1.PublishRequest, 0, len(batch))
	for _, n := range batch {
		if n.ended != nil && n.member.Known() && !n.member.Told() { // it was ending as the Analyzer came
			messages = append(messages, startOf(n.member))
		}
		messages = append(messages, n.message())
	}
	if len(messages) == 1 {
		o.options.Send(messages[0])
	} else {
		o.options.Send(&attunev1.PublishRequest{Event: &attunev1.PublishRequest_News{News: &attunev1.NewsBatch{News: messages}}})
	}
	for _, n := range batch {
		if n.ended != nil {
			delete(o.told, n.member)
			continue
		}
		o.know(n.member)
		o.options.Heard(n.member)
	}
}

// know notes that the Analyzer knows of a process. The caller holds mu.
func (o *Outbox) know(m *member.Member) {
	m.Tell()
	o.told[m] = struct{}{}
}

func (n news) message() *attunev1.PublishRequest {
	if n.ended != nil {
		return endOf(n.ended)
	}
	return startOf(n.member)
}

func startOf(m *member.Member) *attunev1.PublishRequest {
	if m.Known() {
		return changeOf(m)
	}
	return &attunev1.PublishRequest{Event: &attunev1.PublishRequest_ProcessStarted{ProcessStarted: m.Snapshot()}}
}

func changeOf(m *member.Member) *attunev1.PublishRequest {
	return &attunev1.PublishRequest{Event: &attunev1.PublishRequest_ProcessChanged{ProcessChanged: m.Snapshot()}}
}

func endOf(ended *attunev1.ProcessEnded) *attunev1.PublishRequest {
	return &attunev1.PublishRequest{Event: &attunev1.PublishRequest_ProcessEnded{ProcessEnded: ended}}
}

// Hush notes that there is no Analyzer: none knows of any process.
func (o *Outbox) Hush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.silent = true
	o.forget()
}

// forget notes that the Analyzer knows of no process. The caller holds mu.
func (o *Outbox) forget() {
	for m := range o.told {
		m.Hush()
	}
	clear(o.told)
}

// Retell tells an Analyzer of all that lives, and of what has ended since there
// was none, and has it told the rest from then on by open. What is left when send
// fails is for the next one.
func (o *Outbox) Retell(send func(*attunev1.PublishRequest) error, open func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	held := o.news.Drain()
	heard, err := o.retellAll(held, send)
	if err != nil {
		o.forget()
		o.news.Return(held)
		return
	}
	o.silent = false
	open()
	for _, m := range heard {
		o.options.Heard(m)
	}
	for _, n := range held {
		if n.ended != nil {
			delete(o.told, n.member)
		}
	}
}

// retellAll sends what an Analyzer has to know, and returns whom it has told of. What
// lives is told whole; of what has ended since, or is just ending, the news have the start.
// The caller holds mu.
func (o *Outbox) retellAll(held []news, send func(*attunev1.PublishRequest) error) (heard []*member.Member, err error) {
	tell := func(m *member.Member) error {
		if err := send(startOf(m)); err != nil {
			return err
		}
		o.know(m)
		heard = append(heard, m)
		return nil
	}
	for _, m := range o.options.Living() {
		if err := tell(m); err != nil {
			return nil, err
		}
	}
	for _, n := range held {
		if !n.member.Told() {
			if err := tell(n.member); err != nil {
				return nil, err
			}
		}
		if n.ended != nil {
			if err := send(endOf(n.ended)); err != nil {
				return nil, err
			}
		}
	}
	return heard, nil
}
