// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"log/slog"
	"testing"

	"github.com/attune-hpc/attune/internal/registry"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/pkitest"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// A registry that does not answer for a while has what it has lost in the end, although
// nothing else changes in it.
func TestRevocationIsPutBackInTheEnd(t *testing.T) {
	server := mustStart(t, t.TempDir())
	wire, identity := mustLay(t, server.URL()), pkitest.New(t).Analyzer(t, "analyzer")
	c, err := registry.Open(t.Context(), registry.Options{
		URL: wire.URL, TTL: longTTL, Identity: identity, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	other := mustOpen(t, server.URL())
	mustPut(t, other, "first", "first")
	await := watch(t, c)
	await("the first", has("first"))
	wire.Hush()
	identity.Revoke([]*attunev1.Revocation{{Serial: "abc", Reason: "stolen"}})
	mustPut(t, other, "second", "second")
	await("the second, after an attempt", has("first", "second"))
	wire.Break()
	wire.Mend()
	patience.Until(t, "the revocation to be there", func() bool {
		list, err := other.Revocations(patience.Context(t))
		if err != nil {
			t.Fatal(err)
		}
		return len(list) == 1
	})
}
