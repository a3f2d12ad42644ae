// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/protobuf/proto"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// renewals that fit into the life of a record.
const renewals = 3

// Announcement is the record of an Analyzer, kept in the registry for as long as
// it is there. Its methods may be called by many goroutines.
type Announcement struct {
	client *Client
	id     string
	record *attunev1.AnalyzerRecord // never changed
	// tunlets are the names of those that it has now; nil: it does not say.
	tunlets func() []string
	cancel  context.CancelFunc
	done    chan struct{}

	mu sync.Mutex
	// life is how long the record lives at the registry; 0: not known yet.
	life time.Duration
	// began is when the last write that succeeded was begun; zero: none did.
	began time.Time
	// term counts how often the record came to life: what was held in another
	// term may have been taken.
	term uint64
	// written is closed, and made anew, at each write.
	written chan struct{}
}

// Announce keeps an Analyzer's record in the registry until ctx ends, End is
// called, or the client is closed, and then deletes it. It returns at once, also
// when the registry is away; the error is about the record. A client announces
// one Analyzer at a time.
//
// The Analyzer answers the questions of FindAnalyzers and those of nodes from
// then on, with the names of the tunlets that it has then; nil: it does not say them.
func (c *Client) Announce(ctx context.Context, record *attunev1.AnalyzerRecord, tunlets func() []string) (*Announcement, error) {
	if err := checkID("Analyzer", record.GetId()); err != nil {
		return nil, err
	}
	a := &Announcement{
		client: c, record: proto.CloneOf(record), id: record.GetId(), tunlets: tunlets,
		done: make(chan struct{}), written: make(chan struct{}),
	}
	if !c.announced.CompareAndSwap(nil, a) {
		return nil, fmt.Errorf("analyzer %q: its client has announced one already", a.id)
	}
	c.tidying.Do(func() { c.start(c.keepTidy) })
	ctx, a.cancel = context.WithCancel(ctx)
	c.start(func(closed context.Context) {
		defer close(a.done)
		defer context.AfterFunc(closed, a.cancel)()
		a.keep(ctx)
	})
	return a, nil
}

// End deletes the record and returns when that is done, or has been given up
// because the registry is away.
func (a *Announcement) End() {
	a.cancel()
	<-a.done
}

// keep writes the record until ctx ends.
func (a *Announcement) keep(ctx context.Context) {
	defer a.leave()
	defer a.client.serveAnalyzer(a.record, a.tunlets)()
	defer a.client.serveOrders()()
	linked := make(chan struct{}, 1)
	defer a.client.link.listen(linked)()
	for ctx.Err() == nil {
		err := a.write(ctx)
		wait := a.interval()
		if err != nil && ctx.Err() == nil {
			a.client.log.Warn("registry does not take the record, trying again", "id", a.id, "error", err)
			wait = min(wait, time.Second)
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-linked: // it may be another registry
		}
		timer.Stop()
	}
}

// write puts the record.
func (a *Announcement) write(ctx context.Context) error {
	return a.client.do(ctx, func(ctx context.Context) error {
		value, err := a.client.encode(a.record)
		if err != nil {
			return err
		}
		kv, err := a.client.bucket(ctx, bucketAnalyzers)
		if err != nil {
			return err
		}
		life, err := a.lifetime(ctx, kv)
		if err != nil {
			return err
		}
		began := time.Now()
		if _, err := kv.Put(ctx, a.id, value); err != nil {
			return err
		}
		a.renewed(life, began)
		return nil
	})
}

// renewed notes a write that succeeded.
func (a *Announcement) renewed(life time.Duration, began time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.lives() {
		a.term++
	}
	a.life, a.began = life, began
	close(a.written)
	a.written = make(chan struct{})
}

// lives says whether nobody can believe this Analyzer dead. The caller holds
// the lock.
func (a *Announcement) lives() bool {
	return !a.began.IsZero() && time.Since(a.began) < a.life*2/3
}

// lifetime asks once for how long the bucket's records live.
func (a *Announcement) lifetime(ctx context.Context, kv jetstream.KeyValue) (time.Duration, error) {
	a.mu.Lock()
	life := a.life
	a.mu.Unlock()
	if life > 0 {
		return life, nil
	}
	status, err := kv.Status(ctx)
	if err != nil {
		return 0, err
	}
	if status.TTL() <= 0 {
		return 0, fmt.Errorf("registry bucket %s keeps records for ever; delete it, it is made again", bucketAnalyzers)
	}
	return status.TTL(), nil
}

// interval is until the next renewal: not the same for all who have connected
// again at one moment.
func (a *Announcement) interval() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.life == 0 {
		return time.Second
	}
	most := a.life / renewals
	return most - rand.N(most/4+1)
}

// valid returns the term in which nobody can believe this Analyzer dead, 0 if
// somebody may, and a channel that is closed at the next renewal.
func (a *Announcement) valid() (term uint64, renewed <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.lives() {
		return 0, a.written
	}
	return a.term, a.written
}

// leave says good-bye. From here on the Analyzer's leases may be taken.
func (a *Announcement) leave() {
	a.mu.Lock()
	a.began = time.Time{}
	a.mu.Unlock()
	a.client.announced.Store(nil)
	if !a.client.Connected() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), goodbye)
	defer cancel()
	kv, err := a.client.bucket(ctx, bucketAnalyzers)
	if err == nil {
		err = kv.Delete(ctx, a.id)
	}
	if err != nil {
		a.client.log.Warn("registry keeps the record until it has ended by age", "id", a.id, "error", err)
	}
}
