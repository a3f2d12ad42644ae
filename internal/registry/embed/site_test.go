// SPDX-License-Identifier: Apache-2.0

package embed_test

import (
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/pki"
	"github.com/attune-hpc/attune/internal/registry"
	"github.com/attune-hpc/attune/internal/registry/embed"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/pkitest"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// gateway is the one way between two sites. It can be closed.
type gateway struct {
	listener net.Listener
	to       string

	mu     sync.Mutex
	closed bool
	conns  []net.Conn
}

func mustPass(t *testing.T, to string) *gateway {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gateway{listener: listener, to: to}
	var tasks sync.WaitGroup
	tasks.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			if far := g.dial(near); far != nil {
				tasks.Go(func() { pass(near, far) })
				tasks.Go(func() { pass(far, near) })
			} else {
				near.Close()
			}
		}
	})
	t.Cleanup(func() {
		listener.Close()
		g.Close()
		tasks.Wait()
	})
	return g
}

// pass copies by hand: the kernel's way keeps pipes open for later.
func pass(to, from net.Conn) {
	_, _ = io.Copy(struct{ io.Writer }{to}, struct{ io.Reader }{from})
	to.Close()
	from.Close()
}

// dial returns the other end of a connection, nil while the gateway is closed.
func (g *gateway) dial(near net.Conn) net.Conn {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil
	}
	far, err := net.Dial("tcp", g.to)
	if err != nil {
		return nil
	}
	g.conns = append(g.conns, near, far)
	return far
}

// Close breaks all connections and lets no others through.
func (g *gateway) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	for _, conn := range g.conns {
		conn.Close()
	}
	g.conns = nil
}

// Open lets connections through again.
func (g *gateway) Open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = false
}

// sites are two, of which one has no registry of its own and is left through a
// gateway only.
type sites struct {
	hub, leaf *embed.Server
	between   *gateway
	ca        *pkitest.Site
}

func mustMakeSites(t *testing.T) sites {
	t.Helper()
	s := sites{ca: pkitest.New(t)}
	s.hub = mustStart(t, embed.Options{
		Socket: filepath.Join(t.TempDir(), "hub"), LeafListen: "127.0.0.1:0", Identity: s.ca.Analyzer(t, "hub"),
	})
	s.between = mustPass(t, s.hub.LeafAddr())
	s.leaf = mustStart(t, embed.Options{
		Socket: filepath.Join(t.TempDir(), "leaf"), Identity: s.ca.Analyzer(t, "leaf"),
		Remotes: []string{"tls://" + s.between.listener.Addr().String()},
	})
	return s
}

// What one site says is heard at the other.
func TestTwoSites(t *testing.T) {
	s := mustMakeSites(t)
	here, there := mustOpen(t, s.hub.URL(), nil), mustOpen(t, s.leaf.URL(), nil)
	mustPut(t, here, "solver")
	mustSee(t, there, "solver")
	mustPut(t, there, "mesh")
	mustSee(t, here, "mesh")

	// A node there is found and answers here, and an Analyzer here answers it.
	analyzer := &attunev1.AnalyzerRecord{Id: "here"}
	if _, err := here.Announce(t.Context(), analyzer, nil); err != nil {
		t.Fatal(err)
	}
	node := mustOpenNode(t, s.leaf.URL(), nil)
	mustSee(t, node, "solver")
	ctx, cancel := context.WithCancel(t.Context())
	var tasks sync.WaitGroup
	tasks.Go(func() {
		_ = node.Announce(ctx, nil, func() *attunev1.ControllerRecord {
			return &attunev1.ControllerRecord{Id: "c", Host: "far"}
		})
	})
	tasks.Go(func() {
		_ = node.ServeLocate(ctx, "c", func(*attunev1.LocateRequest) *attunev1.LocateResponse {
			return new(attunev1.LocateResponse)
		})
	})
	defer tasks.Wait()
	defer cancel()
	patience.Until(t, "the answer of the controller there", func() bool {
		answers, silent, err := here.Locate(patience.Context(t), &attunev1.LocateRequest{Host: "far"}, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		return len(answers) == 1 && len(silent) == 0
	})
	// An Analyzer there can own what was registered here.
	analyzer = &attunev1.AnalyzerRecord{Id: "a", Host: "far"}
	if _, err := there.Announce(t.Context(), analyzer, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := there.Claim(patience.Context(t), "solver"); err != nil {
		t.Errorf("claim from the other site: %v", err)
	}
	for _, server := range []*embed.Server{s.hub, s.leaf} {
		if err := server.Healthy(); err != nil {
			t.Error(err)
		}
	}
}

// The way between the sites is closed for a while. Clients at the far one do not
// lose their own connection, and miss what happens, until they look.
func TestWayIsClosed(t *testing.T) {
	s := mustMakeSites(t)
	here, there := mustOpen(t, s.hub.URL(), nil), mustOpen(t, s.leaf.URL(), nil)
	mustPut(t, here, "before")
	seen := make(chan registry.View, 100)
	ctx, cancel := context.WithCancel(patience.Context(t))
	done := make(chan error, 1)
	go func() {
		done <- there.Watch(ctx, func(v registry.View) {
			if v.Registrations["before"] == nil {
				t.Error("a registration ended with the way to the registry")
			}
			seen <- v
		})
	}()
	<-seen
	s.between.Close()
	mustPut(t, here, "meanwhile")
	patience.Until(t, "the loss of the other site to be noticed", func() bool { return s.leaf.Healthy() != nil })
	if !there.Connected() {
		t.Error("the way between the sites is closed, and a client lost its own server")
	}
	s.between.Open()
	for there := false; !there; {
		select {
		case v := <-seen:
			there = v.Registrations["meanwhile"] != nil
		case err := <-done:
			t.Fatalf("never seen: %v", err)
		}
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A person cannot come as a site, nor can a node.
func TestLeafOfAnother(t *testing.T) {
	ca := pkitest.New(t)
	for name, identity := range map[string]*pki.Identity{"a person": ca.User(t, "user", 1000), "a node": ca.Node(t, "n1")} {
		t.Run(name, func(t *testing.T) { leafIsRefused(t, ca, identity) })
	}
}

func leafIsRefused(t *testing.T, ca *pkitest.Site, identity *pki.Identity) {
	refused := listenFor(t, "authentication error")
	hub := mustStart(t, embed.Options{
		Socket: filepath.Join(t.TempDir(), "hub"), LeafListen: "127.0.0.1:0", Identity: ca.Analyzer(t, "hub"),
		Log: refused.log(),
	})
	here := mustOpen(t, hub.URL(), nil)
	mustPut(t, here, "solver")
	leaf := mustStart(t, embed.Options{
		Socket: filepath.Join(t.TempDir(), "leaf"), Identity: identity,
		Remotes: []string{"tls://" + hub.LeafAddr()},
	})
	there := mustOpen(t, leaf.URL(), nil)
	ctx, cancel := context.WithCancel(t.Context())
	asked := make(chan error, 1)
	go func() {
		_, err := there.Registrations(ctx)
		asked <- err
	}()
	patience.Receive(t, "refusal", refused.seen)
	patience.Until(t, "the server not to count as connected", func() bool { return leaf.Healthy() != nil })
	cancel()
	if err := patience.Receive(t, "answer", asked); err == nil {
		t.Error("another's server got what is registered")
	}
}
