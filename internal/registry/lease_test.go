// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	nats "github.com/nats-io/nats-server/v2/server"

	"github.com/attune-hpc/attune/internal/registry"
	"github.com/attune-hpc/attune/internal/testing/patience"
)

// rival is an Analyzer that wants what others want too.
type rival struct {
	client *registry.Client
	wire   *wire
	id     string

	mu    sync.Mutex
	lease *registry.Lease
	terms int
}

// valid returns the epoch in which the rival has a valid lease, 0: none.
func (r *rival) valid() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lease == nil {
		return 0
	}
	epoch := r.lease.Epoch()
	if !r.lease.Valid() || r.lease.Epoch() != epoch {
		return 0
	}
	return epoch
}

func mustRival(t *testing.T, server, id string, ttl time.Duration) *rival {
	t.Helper()
	r := &rival{id: id, wire: mustLay(t, server)}
	c, err := registry.Open(t.Context(), registry.Options{URL: r.wire.URL, TTL: ttl})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	r.client = c
	mustAnnounce(t, c, id)
	return r
}

// want claims the registration again and again, and lets go of it sometimes.
func (r *rival) want(ctx context.Context, registration string) error {
	for ctx.Err() == nil {
		within, cancel := context.WithTimeout(ctx, patience.Limit)
		lease, err := r.client.Claim(within, registration)
		cancel()
		if errors.Is(err, registry.ErrOwned) || ctx.Err() != nil {
			pause(ctx, 10*time.Millisecond)
			continue
		}
		if err != nil {
			return err
		}
		r.mu.Lock()
		r.lease = lease
		r.terms++
		r.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-lease.Lost():
		case <-time.After(rand.N(100 * time.Millisecond)):
			if rand.N(2) == 0 {
				if err := lease.Release(ctx); err != nil && ctx.Err() == nil {
					return err
				}
			} else {
				select {
				case <-ctx.Done():
				case <-lease.Lost():
				case <-time.After(time.Second):
				}
			}
		}
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// TestLeaseHasOneHolder lets Analyzers fight for one registration, with networks
// that break, and looks whether two ever have it at a time.
func TestLeaseHasOneHolder(t *testing.T) {
	rounds := 30
	if testing.Short() {
		rounds = 5
	}
	server := mustStart(t, t.TempDir())
	var rivals []*rival
	for i := range 3 {
		rivals = append(rivals, mustRival(t, server.URL(), fmt.Sprint("rival-", i), shortTTL))
	}
	mustPut(t, rivals[0].client, "solver", "solver")

	ctx, cancel := context.WithCancel(t.Context())
	var tasks sync.WaitGroup
	for _, r := range rivals {
		tasks.Go(func() {
			if err := r.want(ctx, "solver"); err != nil {
				t.Error(err)
			}
		})
	}
	tasks.Go(func() { lookForTwo(ctx, t, rivals) })
	for late := time.Now().Add(patience.Limit); rounds > 0 || !allHadIt(rivals); rounds-- {
		if time.Now().After(late) {
			t.Error("one of them never had it")
			break
		}
		r := rivals[rand.N(len(rivals))]
		switch rand.N(3) {
		case 0:
			r.wire.Cut()
			pause(ctx, rand.N(3*shortTTL))
			r.wire.Mend()
		case 1:
			r.wire.Break()
		case 2:
			pause(ctx, rand.N(shortTTL))
		}
	}
	cancel()
	tasks.Wait()
}

func allHadIt(rivals []*rival) bool {
	for _, r := range rivals {
		r.mu.Lock()
		had := r.terms
		r.mu.Unlock()
		if had == 0 {
			return false
		}
	}
	return true
}

// lookForTwo reports two valid leases: one that is valid before and after
// another one is, in one epoch, so that nothing has come in between.
func lookForTwo(ctx context.Context, t *testing.T, rivals []*rival) {
	t.Helper()
	for ctx.Err() == nil {
		for _, one := range rivals {
			before := one.valid()
			if before == 0 {
				continue
			}
			for _, other := range rivals {
				if other == one {
					continue
				}
				if epoch := other.valid(); epoch != 0 && one.valid() == before {
					t.Errorf("%s has it in epoch %d, and %s in %d", one.id, before, other.id, epoch)
					return
				}
			}
		}
		time.Sleep(200 * time.Microsecond)
	}
}

// TestClaimsAtOnce lets several Analyzers claim each of many registrations at
// one moment: each has one owner.
func TestClaimsAtOnce(t *testing.T) { eachServer(t, testClaimsAtOnce) }

func testClaimsAtOnce(t *testing.T, server *process) {
	const registrations, analyzers = 100, 4
	owners := make([]atomic.Int32, registrations)
	writer := mustOpen(t, server.URL)
	for i := range registrations {
		mustPut(t, writer, fmt.Sprint("r", i), "solver")
	}
	var tasks sync.WaitGroup
	begin := make(chan struct{})
	for i := range analyzers {
		c := mustOpen(t, server.URL)
		mustAnnounce(t, c, fmt.Sprint("analyzer-", i))
		tasks.Go(func() {
			<-begin
			for i := range registrations {
				switch _, err := c.Claim(patience.Context(t), fmt.Sprint("r", i)); {
				case err == nil:
					owners[i].Add(1)
				case !errors.Is(err, registry.ErrOwned):
					t.Error(err)
				}
			}
		})
	}
	close(begin)
	tasks.Wait()
	for i := range owners {
		if n := owners[i].Load(); n != 1 {
			t.Errorf("registration %d has %d owners", i, n)
		}
	}
}

// TestTakeover cuts the owner off: another one gets the registration, and the
// first one knows as soon as it is told.
func TestTakeover(t *testing.T) {
	server := mustStart(t, t.TempDir())
	first := mustRival(t, server.URL(), "first", shortTTL)
	second := mustRival(t, server.URL(), "second", shortTTL)
	mustPut(t, first.client, "solver", "solver")
	lease, err := first.client.Claim(patience.Context(t), "solver")
	if err != nil {
		t.Fatal(err)
	}
	first.wire.Cut()
	unowned := make(chan []string)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- second.client.WatchUnowned(ctx, func(ids []string) {
			select {
			case unowned <- ids:
			case <-ctx.Done():
			}
		})
	}()
	if ids := patience.Receive(t, "list of what has no owner", unowned); len(ids) != 1 || ids[0] != "solver" {
		t.Errorf("unowned: %q", ids)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	var next *registry.Lease
	patience.Until(t, "the other one to get it", func() bool { // a last sign of life may have been on its way
		next, err = second.client.Claim(patience.Context(t), "solver")
		if err != nil && !errors.Is(err, registry.ErrOwned) {
			t.Fatal(err)
		}
		return err == nil
	})
	if lease.Valid() {
		t.Error("who cannot renew believes to have it still")
	}
	select {
	case <-lease.Lost():
		t.Error("lease lost, although nobody can have told so")
	default:
	}
	first.wire.Mend()
	patience.Closed(t, "word to who had it before", lease.Lost())
	patience.Until(t, "the new lease to be valid", next.Valid)
}

// TestSameAnalyzerStartsAgain: after kill -9, an Analyzer under its old id need
// not wait until it is believed dead.
func TestSameAnalyzerStartsAgain(t *testing.T) {
	server := mustStart(t, t.TempDir())
	before := mustRival(t, server.URL(), "analyzer", longTTL)
	mustPut(t, before.client, "solver", "solver")
	lease, err := before.client.Claim(patience.Context(t), "solver")
	if err != nil {
		t.Fatal(err)
	}
	before.wire.Cut()
	defer before.wire.Break() // or its good-bye would wait for an answer
	after := mustRival(t, server.URL(), "analyzer", longTTL)
	found := errors.New("found")
	ctx, cancel := context.WithCancelCause(patience.Context(t))
	err = after.client.WatchUnowned(ctx, func([]string) { cancel(found) })
	if !errors.Is(err, found) {
		t.Errorf("what it had in its earlier life is never offered: %v", err)
	}
	again, err := after.client.Claim(patience.Context(t), "solver")
	if err != nil {
		t.Fatal(err)
	}
	if again.Epoch() <= lease.Epoch() {
		t.Errorf("epoch %d after %d: want it to grow", again.Epoch(), lease.Epoch())
	}
}

// A lease that is taken again before anybody has seen that the registry lost its records is
// not over: its registration is put back.
func TestRenewedInAnEmptyRegistry(t *testing.T) {
	url := mustServeAll(t)
	c, other := mustOpen(t, url), mustOpen(t, url)
	mustAnnounce(t, c, "analyzer")
	mustPut(t, c, "solver", "solver")
	ctx := patience.Context(t)
	lease, err := c.Claim(ctx, "solver")
	if err != nil {
		t.Fatal(err)
	}
	if err := other.LoseOrders(ctx); err != nil {
		t.Fatal(err)
	}
	if !lease.Renew(ctx) {
		t.Fatal("the lease is over, although nobody else was there")
	}
	if err := c.Compare(ctx); err != nil {
		t.Fatal(err)
	}
	fresh := watch(t, mustOpen(t, url))
	fresh("what has an owner, by a new client", has("solver"))
	fresh("the owner, by a new client", owned("analyzer", "solver"))
}

// mustServeAll runs a server whose clients may do everything, which Attune's own lets nobody.
func mustServeAll(t *testing.T) (url string) {
	t.Helper()
	server, err := nats.NewServer(&nats.Options{Host: "127.0.0.1", Port: nats.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	server.Start()
	t.Cleanup(func() { server.Shutdown(); server.WaitForShutdown() })
	if !server.ReadyForConnections(patience.Limit) {
		t.Fatal("the server does not listen")
	}
	return server.ClientURL()
}
