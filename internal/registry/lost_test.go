// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/registry"
	"github.com/attune-hpc/attune/internal/testing/patience"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

func owned(by, registration string) func(registry.View) bool {
	return func(v registry.View) bool { return v.Owners[registration].GetAnalyzer().GetId() == by }
}

func has(ids ...string) func(registry.View) bool {
	return func(v registry.View) bool {
		for _, id := range ids {
			if v.Registrations[id] == nil {
				return false
			}
		}
		return len(v.Registrations) == len(ids)
	}
}

// A client that is opened before its registry waits for it.
func TestBeforeTheRegistry(t *testing.T) {
	eachServer(t, func(t *testing.T, server *process) {
		server.end(t, unix.SIGTERM)
		c := mustOpen(t, server.URL)
		if c.Connected() {
			t.Error("connected to nothing")
		}
		short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		r := &attunev1.Registration{Id: "solver"}
		if err := c.PutRegistration(short, r); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("put without registry: %v, want %v", err, context.DeadlineExceeded)
		}
		await := watch(t, c)
		put := make(chan error, 1)
		go func() { put <- c.PutRegistration(patience.Context(t), r) }()
		server.mustStart(t)
		if err := <-put; err != nil {
			t.Error(err)
		}
		await("what was put", has("solver"))
	})
}

// Whatever the registry dies of, what it had is there when it comes back, and
// nobody who runs has noticed.
func TestRegistryComesBack(t *testing.T) {
	for _, row := range []struct {
		name string
		by   unix.Signal
	}{{"ended", unix.SIGTERM}, {"killed", unix.SIGKILL}} {
		t.Run(row.name, func(t *testing.T) {
			eachServer(t, func(t *testing.T, server *process) { testComesBack(t, server, row.by) })
		})
	}
}

func testComesBack(t *testing.T, server *process, by unix.Signal) {
	c, other := mustOpenFor(t, server.URL, shortTTL), mustOpenFor(t, server.URL, shortTTL)
	mustAnnounce(t, c, "analyzer")
	mustPut(t, c, "solver", "solver")
	lease, err := c.Claim(patience.Context(t), "solver")
	if err != nil {
		t.Fatal(err)
	}
	await, node := watch(t, other), watch(t, mustOpenNode(t, server.URL))
	await("the owner", owned("analyzer", "solver"))
	node("the owner, by a node", owned("analyzer", "solver"))

	server.end(t, by)
	patience.Until(t, "the time to end in which the lease may be renewed", func() bool { return !lease.Valid() })
	server.mustStart(t)
	mustPut(t, c, "mesh", "mesh")
	await("what was there and what is new", has("solver", "mesh"))
	node("what was there and what is new, by a node", has("solver", "mesh"))
	patience.Until(t, "the lease to be valid again", lease.Valid)
	select {
	case <-lease.Lost():
		t.Error("lease lost, although nobody else was there")
	default:
	}
	fresh := watch(t, mustOpen(t, server.URL))
	fresh("what was there, by a new client", has("solver", "mesh"))
	fresh("the owner, by a new client", owned("analyzer", "solver"))
}

// A registry that comes back empty has its records again from those who have
// them, and takes nothing back meanwhile.
func TestRegistryLosesAll(t *testing.T) { eachServer(t, testLosesAll) }

func testLosesAll(t *testing.T, server *process) {
	c, other := mustOpenFor(t, server.URL, shortTTL), mustOpenFor(t, server.URL, shortTTL)
	mustAnnounce(t, c, "analyzer")
	mustPut(t, c, "solver", "solver")
	mustPut(t, c, "nobodys", "mesh")
	lease, err := c.Claim(patience.Context(t), "solver")
	if err != nil {
		t.Fatal(err)
	}
	before := lease.Epoch()
	await, node := watch(t, other), watch(t, mustOpenNode(t, server.URL))
	await("both", has("solver", "nobodys"))
	node("both, by a node", has("solver", "nobodys"))
	await("the owner", owned("analyzer", "solver"))

	server.end(t, unix.SIGKILL)
	if err := os.RemoveAll(server.Dir); err != nil {
		t.Fatal(err)
	}
	server.mustStart(t)
	fresh := watch(t, mustOpen(t, server.URL))
	fresh("what has an owner, by a new client", has("solver"))
	v := fresh("the owner, by a new client", owned("analyzer", "solver"))
	if got := v.Owners["solver"].GetEpoch(); got <= before {
		t.Errorf("epoch %d after %d: want it to grow", got, before)
	}
	mustPut(t, c, "new", "new")
	await("all that was not taken back", has("solver", "nobodys", "new"))
	node("all that was not taken back, by a node", has("solver", "nobodys", "new"))
	if err := c.DeleteRegistration(patience.Context(t), "nobodys"); err != nil {
		t.Fatal(err)
	}
	await("what was taken back is gone", has("solver", "new"))
	select {
	case <-lease.Lost():
		t.Error("lease lost, although nobody else was there")
	default:
	}
}

// A watcher that is busy for long has everything when it looks again, and keeps
// nobody waiting meanwhile.
func TestSlowWatcher(t *testing.T) {
	server := mustStart(t, t.TempDir())
	writer, reader := mustOpen(t, server.URL()), mustOpen(t, server.URL())
	mustPut(t, writer, "first", "first")
	const many = 3000
	busy, calls := make(chan struct{}), 0
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- reader.Watch(ctx, func(v registry.View) {
			<-busy
			if calls++; len(v.Registrations) == many+1 {
				cancel()
			}
		})
	}()
	for i := range many {
		mustPut(t, writer, fmt.Sprint("r", i), "solver")
	}
	close(busy)
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if calls > many/2 {
		t.Errorf("%d calls for %d changes: want what has gathered in one", calls, many)
	}
}
