// SPDX-License-Identifier: Apache-2.0

package embed_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
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

// busy is a client that asks without end, and keeps its log.
type busy struct {
	*registry.Client

	stop func()

	mu  sync.Mutex // guards what follows
	log bytes.Buffer
	end error // of what it does
}

// Write keeps a line of the log.
func (b *busy) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.log.Write(line)
}

func (b *busy) said(what string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Count(b.log.String(), what)
}

// mustBeBusy connects and puts registrations, and watches them, until stop is called.
func mustBeBusy(t *testing.T, url string, identity *pki.Identity) *busy {
	t.Helper()
	b := new(busy)
	var err error
	if b.Client, err = registry.Open(t.Context(), registry.Options{URL: url, Identity: identity, TTL: time.Hour, Log: slog.New(slog.NewTextHandler(b, nil))}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	fail := func(err error) {
		if ctx.Err() == nil {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.end = errors.Join(b.end, err)
		}
	}
	work.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			if err := b.PutRegistration(ctx, &attunev1.Registration{Id: fmt.Sprint("r-", n%8)}); err != nil {
				fail(err)
			}
		}
	})
	work.Go(func() { fail(b.Watch(ctx, func(registry.View) {})) })
	b.stop = sync.OnceFunc(func() { cancel(); work.Wait(); b.Close() })
	t.Cleanup(b.stop)
	return b
}

// mustHaveLasted ends it: nothing may have failed, and no connection been lost.
func (b *busy) mustHaveLasted(t *testing.T) {
	t.Helper()
	b.stop()
	if b.end != nil {
		t.Error(b.end)
	}
	if b.said("registry lost") > 0 {
		t.Errorf("log: %s", &b.log)
	}
}

// TestRenewed: a client whose certificate was replaced connects again with the new one
// before the server closes what the old one has made.
func TestRenewed(t *testing.T) {
	site := pkitest.New(t)
	server := mustStart(t, embed.Options{Listen: "127.0.0.1:0", Identity: site.Analyzer(t, "server")})
	request := pki.Request{Name: "node", Role: attunev1.Role_ROLE_ANALYZER, Valid: time.Minute}
	client := mustBeBusy(t, server.URL(), pkitest.Open(t, site.Issue(t, request)))
	patience.Until(t, "connection", client.Connected)
	site.Issue(t, request)
	patience.Until(t, "another connection", func() bool { return client.said("registry connected again") > 0 })
	client.mustHaveLasted(t)
	if n := client.said("by the certificate that is there now"); n != 1 {
		t.Errorf("connected again %d times: %s", n, &client.log)
	}
}
