// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package node

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/controller"
	"github.com/attune-hpc/attune/controller/policy"
	"github.com/attune-hpc/attune/internal/peercred"
	"github.com/attune-hpc/attune/internal/registry"
	"github.com/attune-hpc/attune/internal/testing/asuser"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const ann, bob, carol = 5001, 5002, 5003

// answering is a node that serves at a socket, with controllers of the test's and a
// policy that allows everything that a policy can.
type answering struct {
	*Node
	t    *testing.T
	path string
}

func mustAnswer(t *testing.T) *answering {
	t.Helper()
	dir, err := os.MkdirTemp("", "n") //nolint:usetesting // sockets have short paths
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	all, err := policy.Parse("the file", []byte("service: [{mode: tune}]"))
	if err != nil {
		t.Fatal(err)
	}
	a := &answering{t: t, path: filepath.Join(dir, "s")}
	a.Node, err = New(Config{
		ID: "n", Host: "host", RunDir: dir + "/run", StateDir: dir + "/state", Registry: new(registry.Node),
		Policy: func() *policy.Policy { return all },
	})
	if err != nil {
		t.Fatal(err)
	}
	a.registrations.analyzers = func(ctx context.Context) ([]*attunev1.AnalyzerRecord, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	a.connected = func() bool { return false }
	a.maker.create = func(config controller.Config) (controlled, error) { return &steered{config: config}, nil }
	listener, err := peercred.Listen(a.path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	a.workers.open(ctx)
	done := make(chan error, 1)
	go func() { done <- a.ServeLocal(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		a.workers.end()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return a
}

// ask asks as a user.
func (a *answering) ask(uid uint32, method, path, body string) (code int, answer string) {
	a.t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) {
		return asuser.Dial(uid, a.path)
	}}}
	request, err := http.NewRequestWithContext(a.t.Context(), method, "http://attuned"+path, strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		a.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// TestMatrix: three users and root hand processes over to a node, and ask it what it
// has. The rule: root reaches everybody, a user themselves, whatever they say whose
// process it is; an admin is one by certificate, not here. Nobody needs to be anybody
// for what names nobody.
func TestMatrix(t *testing.T) {
	a := mustAnswer(t)
	users := []uint32{ann, bob, carol}
	for _, who := range []uint32{ann, bob, carol, 0} {
		for _, owner := range users {
			for _, said := range users {
				pid := asuser.Sleep(t, owner)
				task, err := json.Marshal(Task{PID: pid, UID: said, Mode: "tune", Job: TaskJob{Kind: "slurm", ID: fmt.Sprintf("%d-%d", who, owner)}})
				if err != nil {
					t.Fatal(err)
				}
				code, answer := a.ask(who, http.MethodPost, "/v1/task", string(task))
				// Whoever root says that a process will run as it has still to become.
				own := who == owner && owner == said
				want := who == 0 || own
				if (code == http.StatusOK) != want || !want && code != http.StatusForbidden {
					t.Errorf("user %d hands over a process of %d as one of %d: %d %s, want %v", who, owner, said, code, answer, want)
				}
			}
		}
	}
	for _, who := range []uint32{ann, bob, carol, 0} {
		code, answer := a.ask(who, http.MethodGet, "/v1/status", "")
		if code != http.StatusOK {
			t.Errorf("user %d: %d %s", who, code, answer)
		}
		for _, owner := range users {
			sees := strings.Contains(answer, fmt.Sprintf("slurm-%d-%d-%d", 0, owner, owner))
			if want := who == 0 || who == owner; sees != want {
				t.Errorf("user %d sees the session of %d: %v, want %v\n%s", who, owner, sees, want, answer)
			}
		}
		for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
			code, answer := a.ask(who, http.MethodGet, path, "")
			if path != "/readyz" && code != http.StatusOK || slices.ContainsFunc(users, func(uid uint32) bool { return strings.Contains(answer, fmt.Sprint(uid)) }) {
				t.Errorf("user %d: %s: %d %s", who, path, code, answer)
			}
		}
	}
}
