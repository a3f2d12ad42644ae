// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"testing"

	"github.com/attune-hpc/attune/internal/registry"
	"github.com/attune-hpc/attune/internal/testing/patience"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestRollOfAStandingConnection: who begins to follow controllers asks them for their
// records, also when the connection stands already.
func TestRollOfAStandingConnection(t *testing.T) {
	server := mustStart(t, t.TempDir())
	c := mustOpen(t, server.URL())
	node, err := registry.OpenNode(t.Context(), registry.Options{URL: server.URL(), TTL: longTTL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(node.Close)
	go func() {
		_ = node.Announce(t.Context(), nil, func() *attunev1.ControllerRecord {
			return &attunev1.ControllerRecord{Id: "one", Host: "one"}
		})
	}()
	known := func() bool { return len(c.Controllers()) == 1 }
	patience.Until(t, "the node to be known", known)
	c.FollowAnew()
	patience.Until(t, "the node to be known again", known)
}
