// SPDX-License-Identifier: Apache-2.0

package embed_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/pki"
	"github.com/attune-hpc/attune/internal/registry"
	"github.com/attune-hpc/attune/internal/registry/embed"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/leaktest"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/pkitest"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

func TestMain(m *testing.M) {
	if options := os.Getenv(serveVariable); options != "" {
		os.Exit(serve(options))
	}
	leaktest.Main(m)
}

func mustStart(t testing.TB, o embed.Options) *embed.Server {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	server, err := embed.Start(o)
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

// sayings is a log that signals each line in which the server says something.
type sayings struct {
	testing.TB
	what string
	seen chan struct{}
}

func listenFor(t testing.TB, what string) *sayings {
	t.Helper()
	return &sayings{t, what, make(chan struct{}, 1)}
}

func (s *sayings) log() *slog.Logger { return slog.New(slog.NewTextHandler(s, nil)) }

func (s *sayings) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte(s.what)) {
		select {
		case s.seen <- struct{}{}:
		default:
		}
	}
	return s.Output().Write(line)
}

// mustOpen connects a client, whom nobody believes dead meanwhile.
func mustOpen(t testing.TB, url string, identity *pki.Identity) *registry.Client {
	t.Helper()
	c, err := registry.Open(t.Context(), registry.Options{
		URL: url, Identity: identity, TTL: time.Hour, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// mustOpenNode connects a node.
func mustOpenNode(t testing.TB, url string, identity *pki.Identity) *registry.Node {
	t.Helper()
	n, err := registry.OpenNode(t.Context(), registry.Options{
		URL: url, Identity: identity, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
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

// mustSee waits until a client or a node sees a registration.
func mustSee(t testing.TB, c watcher, id string) {
	t.Helper()
	found := errors.New("found")
	ctx, cancel := context.WithCancelCause(patience.Context(t))
	defer cancel(nil)
	err := c.Watch(ctx, func(v registry.View) {
		if v.Registrations[id] != nil {
			cancel(found)
		}
	})
	if !errors.Is(err, found) {
		t.Fatalf("registration %s is not seen: %v", id, err)
	}
}

func mustPut(t testing.TB, c *registry.Client, id string) {
	t.Helper()
	if err := c.PutRegistration(patience.Context(t), &attunev1.Registration{Id: id}); err != nil {
		t.Fatal(err)
	}
}

func TestOptions(t *testing.T) {
	identity := pkitest.New(t).Node(t, "node")
	for _, row := range []struct {
		name    string
		options embed.Options
		want    string // part of the error; empty: none
	}{
		{"socket", embed.Options{Dir: "/d", Socket: "/s"}, ""},
		{"network", embed.Options{Dir: "/d", Listen: ":4222", LeafListen: "[::1]:7422", Identity: identity}, ""},
		{"other site", embed.Options{Dir: "/d", Socket: "/s", Remotes: []string{"tls://hub:7422"}, Identity: identity}, ""},
		{"no directory", embed.Options{Socket: "/s"}, "directory"},
		{"relative directory", embed.Options{Dir: "d", Socket: "/s"}, "absolute"},
		{"nowhere", embed.Options{Dir: "/d"}, "listens nowhere"},
		{"no port", embed.Options{Dir: "/d", Listen: "host", Identity: identity}, "HOST:PORT"},
		{"no certificate", embed.Options{Dir: "/d", Listen: ":4222"}, "certificate"},
		{"no certificate for leaves", embed.Options{Dir: "/d", Socket: "/s", LeafListen: ":7422"}, "certificate"},
		{"remote in clear", embed.Options{Dir: "/d", Socket: "/s", Remotes: []string{"nats://hub:7422"}, Identity: identity}, "tls://"},
	} {
		t.Run(row.name, func(t *testing.T) {
			err := row.options.Validate()
			if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
				t.Errorf("error %v, want one with %q", err, row.want)
			}
		})
	}
}

func TestOneServerPerDirectory(t *testing.T) {
	dir := t.TempDir()
	mustStart(t, embed.Options{Dir: dir, Socket: filepath.Join(dir, "socket")})
	_, err := embed.Start(embed.Options{Dir: dir, Socket: filepath.Join(dir, "other")})
	if !errors.Is(err, embed.ErrRunning) {
		t.Errorf("second server: %v, want %v", err, embed.ErrRunning)
	}
}

// What stands in the way is an error, and no end of the process that embeds.
func TestPlaceIsTaken(t *testing.T) {
	identity := pkitest.New(t).Node(t, "node")
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	file := filepath.Join(t.TempDir(), "file")
	files.Write(t, file, "", 0o600)
	for _, row := range []struct {
		name    string
		options embed.Options
	}{
		{"port", embed.Options{Listen: taken.Addr().String(), Identity: identity}},
		{"port for leaves", embed.Options{Listen: "127.0.0.1:0", LeafListen: taken.Addr().String(), Identity: identity}},
		{"socket", embed.Options{Socket: file}},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.options.Dir = t.TempDir()
			if server, err := embed.Start(row.options); err == nil {
				server.Close()
				t.Error("started")
			}
		})
	}
}
