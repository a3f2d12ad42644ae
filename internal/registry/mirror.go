// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"maps"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/internal/beat"
	"github.com/attune-hpc/attune/internal/queue"
)

const (
	// compareEvery is how often a copy is compared with its stream although
	// nothing hints at a loss: a leaf node's connection may have been away
	// without its clients knowing.
	compareEvery = 10 * time.Second
	// readWithin bounds the reading of a whole bucket.
	readWithin = 30 * time.Second
	// wholeAfter is for how long a copy lives of changes alone. Records that end
	// by age, and deletions that nobody remembers any more, are not published.
	wholeAfter = 24 * time.Hour
	// pendingChanges are kept while a bucket is being read; more make it be
	// read again.
	pendingChanges = 1024
)

// mirror is a copy of a bucket, always up to date or becoming so. It is made
// when somebody first wants it.
type mirror struct {
	conn   *conn
	bucket string
	// read brings the copy up to date, with apply.
	read func(context.Context, *mirror) error
	once sync.Once
	// observe, if not nil, is called with what was read or published before it
	// is entered; interrupted: something may have been missed before.
	observe func(list []change, interrupted bool)
	// asked holds who waits for the copy to be compared now.
	asked chan chan struct{}

	// whole is when all of it was last read.
	whole time.Time

	mu        sync.Mutex
	entries   map[string]entry
	stream    stream
	complete  bool
	listeners map[queue.Bell]struct{}
}

// stream is what a mirror is a copy of, and how far. Only the mirror's own
// goroutine changes it.
type stream struct {
	// created is when the stream was; another time: another stream.
	created time.Time
	// last is the sequence number up to which the copy is complete.
	last uint64
	// life is how long records live; 0: until they are deleted.
	life time.Duration
}

// entry is a record of a bucket.
type entry struct {
	record   proto.Message
	value    []byte // the record in binary form
	revision uint64
	// missing: the stream was lost, and the record has not been put into the new
	// one.
	missing bool
}

// change is one message of a bucket's stream.
type change struct {
	key      string
	revision uint64
	record   proto.Message // nil: deleted
	value    []byte
}

func newMirror(c *conn, bucket string, read func(context.Context, *mirror) error) *mirror {
	return &mirror{
		conn: c, bucket: bucket, read: read,
		asked:   make(chan chan struct{}),
		entries: make(map[string]entry), listeners: make(map[queue.Bell]struct{}),
	}
}

// listen starts the mirror if need be and has ch, which holds one, told of
// changes, until stop is called. If the copy is complete it is told at once.
func (m *mirror) listen(ch queue.Bell) (stop func()) {
	m.once.Do(func() { m.conn.start(m.keep) })
	m.mu.Lock()
	defer m.mu.Unlock()
	m.listeners[ch] = struct{}{}
	if m.complete {
		ch.Ring()
	}
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.listeners, ch)
	}
}

// each calls f for each entry, and returns false without if the copy has never
// been complete. f must neither keep the lock's time nor change what it gets.
func (m *mirror) each(f func(key string, e entry)) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.complete {
		return false
	}
	for key, e := range m.entries {
		f(key, e)
	}
	return true
}

// get returns the entry of a key, and of which state of the bucket it is.
func (m *mirror) get(key string) (entry, bool, stream) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.entries[key]
	return e, ok, m.stream
}

// state returns which state of the bucket the copy is, and whether it is all of
// it.
func (m *mirror) state() (now stream, complete bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stream, m.complete
}

// life returns how long records live; 0: for ever, or not known yet.
func (m *mirror) life() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stream.life
}

// keep is the mirror's goroutine.
func (m *mirror) keep(ctx context.Context) {
	live := make(chan *nats.Msg, pendingChanges)
	sub, err := m.conn.nats.ChanSubscribe(Changes+m.bucket+".>", live)
	if err != nil {
		m.conn.log.Error("registry cannot be watched", "bucket", m.bucket, "error", err)
		return
	}
	defer func() { _ = sub.Unsubscribe() }()
	linked := make(chan struct{}, 1)
	defer m.conn.link.listen(linked)()
	// Not all clients at one moment.
	compare := time.NewTicker(compareEvery + rand.N(compareEvery/4))
	defer compare.Stop()

	var waiting []chan struct{}
	for current := false; ctx.Err() == nil; {
		if !current {
			if current = m.synchronise(ctx); !current {
				continue
			}
			for _, ch := range waiting {
				close(ch)
			}
			waiting = nil
		}
		select {
		case <-ctx.Done():
		case <-linked:
			m.interrupted()
			current = false
		case <-compare.C:
			current = false
		case ch := <-m.asked:
			waiting, current = append(waiting, ch), false
		case message := <-live:
			current = m.follow(message)
		}
	}
}

// refresh returns when the copy has been compared with the stream, at a time
// after the call.
func (m *mirror) refresh(ctx context.Context) error {
	m.once.Do(func() { m.conn.start(m.keep) })
	done := make(chan struct{})
	for ask := m.asked; ; {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-m.conn.ctx.Done():
			return ErrClosed
		case ask <- done:
			ask = nil
		case <-done:
			return nil
		}
	}
}

// follow takes a published change, and returns false if others were lost
// before it.
func (m *mirror) follow(message *nats.Msg) bool {
	number, err := strconv.ParseUint(message.Header.Get(jetstream.SequenceHeader), 10, 64)
	if err != nil || number > m.stream.last+1 {
		return false
	}
	if number <= m.stream.last {
		// An older one, or the first of another stream of that name.
		return true
	}
	key := message.Subject[len(Changes)+len(m.bucket)+1:]
	deleted := message.Header.Get("KV-Operation") != "" || message.Header.Get(jetstream.MarkerReasonHeader) != ""
	now := m.stream
	now.last = number
	m.apply(now, []change{m.change(key, number, message.Data, deleted)}, none)
	return true
}

// interrupted tells the observer that there was no connection.
func (m *mirror) interrupted() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.observe != nil {
		m.observe(nil, true)
	}
}

// synchronise makes the copy equal to the bucket; false: it has to be tried
// again.
func (m *mirror) synchronise(ctx context.Context) bool {
	err := m.conn.doWithin(ctx, readWithin, func(ctx context.Context) error { return m.read(ctx, m) })
	if err != nil && ctx.Err() == nil {
		m.conn.log.Warn("registry cannot be read, trying again", "bucket", m.bucket, "error", err)
		beat.Pause(ctx, time.Second)
	}
	return err == nil
}

// what says which entries to keep that a reading did not name.
type what int

const (
	none    what = iota // the reading was of changes only
	gone                // they are deleted
	missing             // the stream is another one: they are kept
)

// compare says what becomes of entries that a reading of a stream does not name:
// they are missing if it is not the one, or not the state of it, that was copied.
func (m *mirror) compare(now stream) what {
	if m.stream.created.IsZero() || now.created.Equal(m.stream.created) && now.last >= m.stream.last {
		return none
	}
	if now.life == 0 { // the others end by age anyway
		m.conn.log.Warn("registry has lost what it had, putting back what is ours", "bucket", m.bucket)
	}
	return missing
}

// change decodes a message. A record that cannot be decoded, of a later version
// perhaps, is as good as not there.
func (m *mirror) change(key string, revision uint64, value []byte, deleted bool) change {
	c := change{key: key, revision: revision}
	if deleted {
		return c
	}
	record, err := decode(m.bucket, key, value)
	if err != nil {
		m.conn.log.Warn("registry has a record that cannot be read", "bucket", m.bucket, "key", key, "error", err)
		return c
	}
	c.record, c.value = record, value
	return c
}

// apply enters changes and tells the listeners of them, and when the copy is complete for
// the first time; others is what becomes of entries that the list does not name.
func (m *mirror) apply(now stream, list []change, others what) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stream = now
	switch others {
	case gone:
		maps.DeleteFunc(m.entries, func(_ string, e entry) bool { return !e.missing })
	case missing:
		for key, e := range m.entries {
			e.revision, e.missing = 0, true
			m.entries[key] = e
		}
	case none:
	}
	if m.observe != nil {
		m.observe(list, others == missing)
	}
	for _, c := range list {
		if c.record == nil {
			delete(m.entries, c.key)
			continue
		}
		m.entries[c.key] = entry{record: c.record, value: c.value, revision: c.revision}
	}
	if m.complete && len(list) == 0 && others == none {
		return // a comparison has found nothing: listeners look at all that there is
	}
	m.complete = true
	for ch := range m.listeners {
		ch.Ring()
	}
}
