// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/attune-hpc/attune/internal/registry"
	"github.com/attune-hpc/attune/internal/registry/embed"
	"github.com/attune-hpc/attune/internal/testing/patience"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// longTTL is so long that nobody is believed dead during a test, shortTTL so
// short that tests see records end.
const longTTL, shortTTL = time.Hour, 300 * time.Millisecond

// mustStart starts a server of its own that ends with the test.
func mustStart(t testing.TB, dir string) *embed.Server {
	t.Helper()
	server, err := embed.Start(embed.Options{Dir: dir, Socket: filepath.Join(dir, "socket")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return server
}

// mustOpen connects a client that ends with the test.
func mustOpen(t testing.TB, url string) *registry.Client {
	t.Helper()
	return mustOpenFor(t, url, longTTL)
}

// mustOpenFor connects the client of an Analyzer that is believed dead after so
// long.
func mustOpenFor(t testing.TB, url string, ttl time.Duration) *registry.Client {
	t.Helper()
	c, err := registry.Open(t.Context(), registry.Options{URL: url, TTL: ttl, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func mustAnnounce(t testing.TB, c *registry.Client, id string) {
	t.Helper()
	record := &attunev1.AnalyzerRecord{Id: id, Host: "host-" + id, StartedUnixNano: time.Now().UnixNano()}
	if _, err := c.Announce(t.Context(), record, nil); err != nil {
		t.Fatal(err)
	}
}

func mustPut(t testing.TB, c *registry.Client, id, executable string) *attunev1.Registration {
	t.Helper()
	r := &attunev1.Registration{Id: id, Executable: executable}
	if err := c.PutRegistration(patience.Context(t), r); err != nil {
		t.Fatal(err)
	}
	return r
}

// mustOpenNode connects a node, which ends with the test. It tells of itself all
// the time.
func mustOpenNode(t testing.TB, url string) *registry.Node {
	t.Helper()
	n, err := registry.OpenNode(t.Context(), registry.Options{URL: url, TTL: shortTTL, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	return n
}

// watcher is a Client or a Node.
type watcher interface {
	Watch(context.Context, func(registry.View)) error
}

// watch runs a watcher that ends with the test, and returns what waits for a
// view that fits.
func watch(t testing.TB, c watcher) (await func(what string, fits func(registry.View) bool) registry.View) {
	t.Helper()
	views, last := make(chan registry.View, 1), registry.View{}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- c.Watch(ctx, func(v registry.View) {
			select { // only the last one is of interest
			case <-views:
			default:
			}
			views <- v
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) && !errors.Is(err, registry.ErrClosed) {
			t.Errorf("watch ended with %v", err)
		}
	})
	return func(what string, fits func(registry.View) bool) registry.View {
		t.Helper()
		for late := time.After(patience.Limit); !fits(last); {
			select {
			case last = <-views:
			case <-late:
				t.Fatalf("%s was never seen", what)
			}
		}
		return last
	}
}

func TestRegistrationsAreSeen(t *testing.T) { eachServer(t, testRegistrationsAreSeen) }

func testRegistrationsAreSeen(t *testing.T, server *process) {
	t.Run("by an Analyzer", func(t *testing.T) { seenBy(t, server, mustOpen(t, server.URL)) })
	t.Run("by a node", func(t *testing.T) { seenBy(t, server, mustOpenNode(t, server.URL)) })
}

func seenBy(t *testing.T, server *process, reader watcher) {
	writer := mustOpen(t, server.URL)
	mustAnnounce(t, writer, "analyzer")
	solver := mustPut(t, writer, "solver", "/opt/solver")
	await := watch(t, reader)
	await("what was there", func(v registry.View) bool { return len(v.Registrations) == 1 })
	mesh := mustPut(t, writer, "mesh.2", "mesh")
	v := await("another one", func(v registry.View) bool { return len(v.Registrations) == 2 })
	want := map[string]*attunev1.Registration{"solver": solver, "mesh.2": mesh}
	if diff := cmp.Diff(want, v.Registrations, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
	if err := writer.DeleteRegistration(patience.Context(t), "solver"); err != nil {
		t.Fatal(err)
	}
	await("deletion", func(v registry.View) bool { return len(v.Registrations) == 1 })
	list, err := writer.Registrations(patience.Context(t))
	if diff := cmp.Diff([]*attunev1.Registration{mesh}, list, protocmp.Transform()); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if err := writer.DeleteRegistration(patience.Context(t), "mesh.2"); err != nil {
		t.Fatal(err)
	}
	await("the last deletion", func(v registry.View) bool { return len(v.Registrations) == 0 })
}

func TestOwnerIsOne(t *testing.T) { eachServer(t, testOwnerIsOne) }

func testOwnerIsOne(t *testing.T, server *process) {
	first, second := mustOpen(t, server.URL), mustOpen(t, server.URL)
	mustPut(t, first, "solver", "solver")
	mustAnnounce(t, first, "a")
	mustAnnounce(t, second, "b")
	lease, err := first.Claim(patience.Context(t), "solver")
	if err != nil {
		t.Fatal(err)
	}
	if !lease.Valid() {
		t.Error("a new lease is not valid")
	}
	if _, err := second.Claim(patience.Context(t), "solver"); !errors.Is(err, registry.ErrOwned) {
		t.Errorf("second claim: %v, want %v", err, registry.ErrOwned)
	}
	if _, err := second.Claim(patience.Context(t), "mesh"); !errors.Is(err, registry.ErrNoRegistration) {
		t.Errorf("claim of nothing: %v, want %v", err, registry.ErrNoRegistration)
	}
	if err := lease.Release(patience.Context(t)); err != nil {
		t.Fatal(err)
	}
	patience.Closed(t, "end of what was released", lease.Lost())
	next, err := second.Claim(patience.Context(t), "solver")
	if err != nil {
		t.Fatal(err)
	}
	if next.Epoch() <= lease.Epoch() {
		t.Errorf("epoch %d after %d: want it to grow", next.Epoch(), lease.Epoch())
	}
	v := watch(t, first)("the second owner", func(v registry.View) bool {
		return v.Owners["solver"].GetAnalyzer().GetId() == "b"
	})
	if got := v.Owners["solver"].GetEpoch(); got != next.Epoch() {
		t.Errorf("epoch of the record %d, of the lease %d", got, next.Epoch())
	}
}

func TestLocate(t *testing.T) { eachServer(t, testLocate) }

func testLocate(t *testing.T, server *process) {
	asks, node := mustOpen(t, server.URL), mustOpenNode(t, server.URL)
	ctx, cancel := context.WithCancel(t.Context())
	var tasks sync.WaitGroup
	defer tasks.Wait()
	defer cancel()
	for _, host := range []string{"one", "two"} {
		tasks.Go(func() {
			err := node.Announce(ctx, nil, func() *attunev1.ControllerRecord {
				return &attunev1.ControllerRecord{Id: "c-" + host, Host: host}
			})
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
	const processes = 11 // more than one message has
	large := &attunev1.LocatedProcess{Process: &attunev1.Process{CommandLine: []string{strings.Repeat("a", 100<<10)}}}
	tooLarge := &attunev1.LocatedProcess{Process: &attunev1.Process{CommandLine: []string{strings.Repeat("a", 2<<20)}}}
	tasks.Go(func() {
		err := node.ServeLocate(ctx, "c-one", func(*attunev1.LocateRequest) *attunev1.LocateResponse {
			return &attunev1.LocateResponse{Processes: append([]*attunev1.LocatedProcess{tooLarge}, slices.Repeat([]*attunev1.LocatedProcess{large}, processes)...)}
		})
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	wait := 100 * time.Millisecond
	patience.Until(t, "one to answer and two to be silent", func() bool {
		found, silent, err := asks.Locate(patience.Context(t), &attunev1.LocateRequest{}, wait)
		wait *= 2 // questions that nobody waits for any more are answered all the same, before the next one
		if err != nil {
			t.Fatal(err)
		}
		return len(found) == 1 && len(found[0].GetProcesses()) == processes && cmp.Equal(silent, []string{"two"})
	})
}

// TestControllersEnd: who says good-bye is gone at once, and who dies after a while.
func TestControllersEnd(t *testing.T) { eachServer(t, testControllersEnd) }

func testControllersEnd(t *testing.T, server *process) {
	sees := mustOpenFor(t, server.URL, shortTTL)
	hosts := func(want ...string) func() bool {
		return func() bool {
			var got []string
			for _, c := range sees.Controllers() {
				got = append(got, c.GetHost())
			}
			return cmp.Equal(got, want)
		}
	}
	node := mustOpenNode(t, server.URL)
	announce := func(host string) (end func()) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = node.Announce(ctx, nil, func() *attunev1.ControllerRecord {
				return &attunev1.ControllerRecord{Id: host, Host: host}
			})
		}()
		return func() { cancel(); <-done }
	}
	end := []func(){announce("one"), announce("two")}
	patience.Until(t, "both", hosts("one", "two"))
	end[0]()
	patience.Until(t, "one to be gone", hosts("two"))
	fresh := mustOpen(t, server.URL) // asks for the roll, and believes it for an hour
	patience.Until(t, "the other one", func() bool { return len(fresh.Controllers()) == 1 })
	server.end(t, unix.SIGKILL)
	end[1]()
	server.mustStart(t)
	patience.Until(t, "the dead to be forgotten", hosts())
}

func TestFindAnalyzers(t *testing.T) { eachServer(t, testFindAnalyzers) }

func testFindAnalyzers(t *testing.T, server *process) {
	o := registry.Options{URL: server.URL}
	if _, err := registry.FindAnalyzers(patience.Context(t), o); !errors.Is(err, registry.ErrNoAnalyzer) {
		t.Errorf("without Analyzer: %v, want %v", err, registry.ErrNoAnalyzer)
	}
	c := mustOpen(t, server.URL)
	mustAnnounce(t, c, "a")
	var found []*attunev1.AnalyzerRecord
	patience.Until(t, "the Analyzer to be announced", func() bool {
		var err error
		if found, err = registry.FindAnalyzers(patience.Context(t), o); err != nil && !errors.Is(err, registry.ErrNoAnalyzer) {
			t.Fatal(err)
		}
		return err == nil
	})
	if len(found) != 1 || found[0].GetId() != "a" {
		t.Errorf("found %v, want a", found)
	}
}

func TestTunlets(t *testing.T) { eachServer(t, testTunlets) }

// A node hears which tunlets the site has now, or nothing where one Analyzer does not
// say. The stored record has none of it.
func testTunlets(t *testing.T, server *process) {
	n, c := mustOpenNode(t, server.URL), mustOpen(t, server.URL)
	ask := func(wanted ...string) string {
		got, err := n.Tunlets(patience.Context(t), wanted)
		if err != nil {
			t.Error(err)
		}
		return strings.Join(got, " ")
	}
	if got := ask("gc"); got != "" {
		t.Errorf("without Analyzer there is %q", got)
	}
	installed := make(chan struct{})
	have := func() []string {
		select {
		case <-installed:
			return []string{"malloc", "gc"}
		default:
			return []string{"gc"}
		}
	}
	record := &attunev1.AnalyzerRecord{Id: "a"}
	if _, err := c.Announce(t.Context(), record, have); err != nil {
		t.Fatal(err)
	}
	patience.Until(t, "the Analyzer to answer", func() bool { return ask("malloc") == "gc" })
	close(installed)
	patience.Until(t, "the tunlet that was installed", func() bool { return ask("malloc") == "gc malloc" })
	patience.Until(t, "the record to be stored", func() bool {
		stored, err := c.Analyzers(patience.Context(t))
		return err == nil && len(stored) == 1 && len(stored[0].GetTunlets()) == 0
	})
	mustAnnounce(t, mustOpen(t, server.URL), "silent")
	patience.Until(t, "one that does not say what it has", func() bool { return ask("nosuch") == "" })
}

func TestSessions(t *testing.T) { eachServer(t, testSessions) }

func testSessions(t *testing.T, server *process) {
	c := mustOpen(t, server.URL)
	want := []*attunev1.SessionRecord{{Id: "s1", Processes: 2}, {Id: "s2"}}
	for _, s := range []*attunev1.SessionRecord{want[1], {Id: "s1"}, want[0]} {
		if err := c.PutSession(patience.Context(t), s); err != nil {
			t.Fatal(err)
		}
	}
	err := c.PutSession(patience.Context(t), &attunev1.SessionRecord{Id: "s3", CommandLine: []string{strings.Repeat("a", 2<<20)}})
	if large, ok := errors.AsType[*registry.TooLargeError](err); !ok || large.Bytes < 2<<20 || large.Most > 1<<20 {
		t.Errorf("the answer to a large record is %v", err)
	}
	got, err := c.Sessions(patience.Context(t))
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

// Clients that come to a new server at once all find, or make, the same buckets.
func TestBucketsAreMadeOnce(t *testing.T) { eachServer(t, testBucketsAreMadeOnce) }

func testBucketsAreMadeOnce(t *testing.T, server *process) {
	const clients = 16
	var together sync.WaitGroup
	start := make(chan struct{})
	for range clients {
		c := mustOpen(t, server.URL)
		together.Go(func() {
			<-start
			_, orders := c.Registrations(patience.Context(t))
			_, analyzers := c.Analyzers(patience.Context(t))
			_, sessions := c.Sessions(patience.Context(t))
			if err := errors.Join(orders, analyzers, sessions); err != nil {
				t.Error(err)
			}
		})
	}
	close(start)
	together.Wait()
}
