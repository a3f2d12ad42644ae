// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/testing/patience"
)

// mustServe serves a registry over TCP and returns its address.
func mustServe(t *testing.T, r *Registry) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	listener, err := Listen(ctx, ":0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := r.Serve(ctx, listener, slog.New(slog.DiscardHandler)); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		cancel()
		serving.Wait()
	})
	return listener.Addr().String()
}

// TestServe: over TCP there is GET /metrics on this machine, and nothing else.
func TestServe(t *testing.T) {
	r := New(Node)
	r.Read(func(put Put) { put(NodeSessions, 3) })
	at := mustServe(t, r)
	if !strings.HasPrefix(at, "127.0.0.1:") {
		t.Errorf("without a host it listens at %s", at)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, c := range []struct {
		method, path string
		want         int
	}{
		{"GET", "/metrics", http.StatusOK}, {"HEAD", "/metrics", http.StatusOK}, {"POST", "/metrics", http.StatusMethodNotAllowed},
		{"GET", "/", http.StatusNotFound}, {"GET", "/v1/status", http.StatusNotFound}, {"GET", "/debug/pprof/", http.StatusNotFound},
		{"POST", "/v1/task", http.StatusNotFound},
	} {
		request, err := http.NewRequestWithContext(t.Context(), c.method, "http://"+at+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil || answer.StatusCode != c.want {
			t.Errorf("%s %s: %d, %v, want %d", c.method, c.path, answer.StatusCode, err, c.want)
		}
		if c.method == "GET" && c.want == http.StatusOK && !bytes.Contains(text, []byte("\nattune_node_sessions 3\n")) {
			t.Errorf("%s", text)
		}
	}
}

// TestServeIsBounded: who connects and says nothing takes no place for long.
func TestServeIsBounded(t *testing.T) {
	at, begun := mustServe(t, New(Node)), time.Now()
	for range maxConnections {
		conn, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
	client := http.Client{Timeout: patience.Limit}
	answer, err := client.Get("http://" + at + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if took := time.Since(begun); took < time.Second {
		t.Errorf("an answer after %v: %d connections are no bound", took, maxConnections)
	}
}

func TestAddress(t *testing.T) {
	for text, want := range map[string]string{":9117": "127.0.0.1:9117", "0.0.0.0:9117": "0.0.0.0:9117", "[::]:1": "[::]:1", "head:2": "head:2"} {
		if got, err := Address(text); err != nil || got != want {
			t.Errorf("%s: %s, %v, want %s", text, got, err, want)
		}
	}
	for _, c := range []struct{ address, file, want string }{
		{"9117", "", "want HOST:PORT"}, {"", "metrics.prom", "absolute path"}, {"", "/metrics.txt", "ends with .prom"}, {":1", "/a.prom", ""},
	} {
		if err := Validate(c.address, c.file); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q, %q: %v, want %q", c.address, c.file, err, c.want)
		}
	}
}

// TestFile: whoever reads the file finds all of it at any time, and the log says once that
// it cannot be written.
func TestFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "metrics")
	path := filepath.Join(dir, "attuned.prom")
	r := New(Node)
	var log bytes.Buffer
	write := func() {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // after the first time
		r.WriteFile(ctx, path, slog.New(slog.NewTextHandler(&log, nil)))
	}
	write()
	if n := strings.Count(log.String(), "level=ERROR"); n != 1 {
		t.Errorf("there is no directory: %d lines: %s", n, &log)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	write()
	held, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	r.Add(NodeSessionsLost, 1)
	write()
	now, err := os.ReadFile(path)
	old, readErr := io.ReadAll(held)
	const line = "\nattune_node_sessions_lost_total %d\n"
	if err != nil || readErr != nil || !strings.Contains(string(now), fmt.Sprintf(line, 1)) || !strings.Contains(string(old), fmt.Sprintf(line, 0)) {
		t.Errorf("%v, %v: the file is not replaced as a whole:\n%s\n%s", err, readErr, old, now)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v: something is left beside the file", entries, err)
	}
	if strings.Contains(string(now), "\ngo_") || strings.Contains(string(now), "\nprocess_") {
		t.Error("the file has metrics of node_exporter's own: it would refuse all")
	}
}
