// SPDX-License-Identifier: Apache-2.0

package embed_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/pki"
	"github.com/attune-hpc/attune/internal/registry"
	"github.com/attune-hpc/attune/internal/registry/embed"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/pkitest"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// follow has a watcher follow the registry until the test ends.
func follow(t *testing.T, w watcher) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = w.Watch(ctx, func(registry.View) {})
	}()
	t.Cleanup(func() { cancel(); <-done })
}

// A node whose certificate is revoked is cut off from the registry, and does not get
// in again; all other nodes hear of it.
func TestRevokedIsCutOff(t *testing.T) {
	site := pkitest.New(t)
	url, service := mustServe(t, site)
	follow(t, service)
	stolen, honest := site.Node(t, "stolen"), site.Node(t, "honest")
	thief, node := mustOpenNode(t, url, stolen), mustOpenNode(t, url, honest)
	follow(t, node)
	patience.Until(t, "both to be connected", func() bool { return thief.Connected() && node.Connected() })
	r := &attunev1.Revocation{Name: "stolen", BeforeUnix: time.Now().Unix() + 1, Reason: "the node was taken over"}
	if err := service.Revoke(patience.Context(t), r); err != nil {
		t.Fatal(err)
	}
	patience.Until(t, "the thief to be cut off", func() bool { return !thief.Connected() })
	patience.Until(t, "the other node to know", func() bool { return len(honest.Revoked()) == 1 })
	if !node.Connected() {
		t.Error("the other node was cut off, too")
	}
	if _, err := registry.FindAnalyzers(patience.Context(t), registry.Options{URL: url, Identity: stolen}); err == nil || errors.Is(err, registry.ErrNoAnalyzer) {
		t.Errorf("the thief is let in again: %v", err)
	}
	patience.Until(t, "the Analyzer's answer to the other node", func() bool {
		found, err := node.Analyzers(patience.Context(t))
		if err != nil || len(found) > 1 {
			t.Fatalf("the other node finds %v, %v", found, err)
		}
		return len(found) == 1
	})
	if thief.Connected() {
		t.Error("the thief has connected again")
	}
}

// A node leaves a registry whose certificate is revoked.
func TestRevokedRegistryIsLeft(t *testing.T) {
	site := pkitest.New(t)
	server := site.Analyzer(t, "server")
	url := mustStart(t, embed.Options{Listen: "127.0.0.1:0", Identity: server}).URL()
	// With identities of their own: here the server itself does not heed the list.
	service := mustOpen(t, url, site.Analyzer(t, "writer"))
	if _, err := service.Announce(t.Context(), &attunev1.AnalyzerRecord{Id: "analyzer"}, nil); err != nil {
		t.Fatal(err)
	}
	node := mustOpenNode(t, url, site.Node(t, "n1"))
	follow(t, node)
	patience.Until(t, "the node to be connected", node.Connected)
	if err := service.Revoke(patience.Context(t), &attunev1.Revocation{Serial: pki.SerialOf(server.Leaf())}); err != nil {
		t.Fatal(err)
	}
	patience.Until(t, "the node to leave", func() bool { return !node.Connected() })
}

// A registry that has lost its list has it again from whoever remembers it.
func TestRevocationsArePutBack(t *testing.T) {
	site := pkitest.New(t)
	identity := site.Analyzer(t, "server")
	r := &attunev1.Revocation{Serial: "abc", RevokedUnix: 1}
	identity.Revoke([]*attunev1.Revocation{r})
	server := mustStart(t, embed.Options{Listen: "127.0.0.1:0", Identity: identity})
	service := mustOpen(t, server.URL(), identity)
	follow(t, service)
	patience.Until(t, "the list to be there", func() bool {
		list, err := service.Revocations(patience.Context(t))
		if err != nil {
			t.Fatal(err)
		}
		return len(list) == 1 && list[0].GetSerial() == "abc"
	})
}
