// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"testing"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

func ownedBy(id string, epoch uint64, addresses ...string) map[string]*attunev1.OwnerRecord {
	return map[string]*attunev1.OwnerRecord{"r1": {Registration: "r1", Epoch: epoch, Analyzer: &attunev1.AnalyzerRecord{
		Id: id, Host: "head", Addresses: addresses,
	}}}
}

// mustFind returns the address that a finder gives at once.
func mustFind(t *testing.T, f *finder) (address string, moved <-chan struct{}) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // it must not wait
	peer, moved, err := f.Find(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return peer.Address, moved
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// An Analyzer is tried at one of its addresses after the other; what is told
// again moves nobody, another owner does, and so does the same one with another
// epoch.
func TestFinderFollowsTheOwner(t *testing.T) {
	o := newOwners()
	f := &finder{owners: o, registration: "r1", host: "node1"}
	ctx, cancel := context.WithCancel(t.Context())
	found := make(chan string)
	go func() {
		peer, _, _ := f.Find(ctx) // ends with the first owner
		found <- peer.Address
	}()
	o.set(ownedBy("a1", 1, "unix:/a", "head:1", "head:2"))
	if got := <-found; got != "head:1" { // the socket is on another host
		t.Errorf("first address %q", got)
	}
	cancel()
	address, moved := mustFind(t, f)
	if address != "head:2" {
		t.Errorf("second address %q", address)
	}
	o.set(ownedBy("a1", 1, "unix:/a", "head:1", "head:2"))
	if isClosed(moved) {
		t.Error("the same owner counts as another one")
	}
	o.set(ownedBy("a1", 2, "unix:/a", "head:1", "head:2"))
	if !isClosed(moved) {
		t.Error("another epoch is not noticed")
	}
	_, moved = mustFind(t, f)
	o.set(nil)
	if !isClosed(moved) {
		t.Error("an owner that has gone is not noticed")
	}
	if _, _, err := f.Find(ctx); err == nil {
		t.Error("an owner is found that has gone")
	}
}

// What is remembered of registrations goes with them, and who waits for an owner
// hears of it in spite of that.
func TestOwnersAreForgotten(t *testing.T) {
	o := newOwners()
	_, waits := o.get("r1")
	o.set(ownedBy("a1", 1, "head:1"))
	o.set(nil)
	if len(o.of) != 0 {
		t.Errorf("%d registrations are remembered, want none", len(o.of))
	}
	if !isClosed(waits) {
		t.Error("who waits for an owner is not woken")
	}
	found := make(chan string)
	go func() {
		f := &finder{owners: o, registration: "r1", host: "node1"}
		peer, _, _ := f.Find(t.Context()) // ends with the owner
		found <- peer.Address
	}()
	for range 100 {
		o.set(map[string]*attunev1.OwnerRecord{"other": {Registration: "other"}})
	}
	o.set(ownedBy("a1", 2, "head:1"))
	if got := <-found; got != "head:1" {
		t.Errorf("found %q", got)
	}
}

func TestReachable(t *testing.T) {
	analyzer := ownedBy("a1", 1, "head:1", "unix:/a")["r1"].GetAnalyzer()
	if got := reachable(analyzer, "head"); len(got) != 2 || got[0] != "unix:/a" {
		t.Errorf("on its host: %q, want the socket first", got)
	}
	if got := reachable(analyzer, "node1"); len(got) != 1 || got[0] != "head:1" {
		t.Errorf("on another host: %q", got)
	}
	if got := reachable(nil, "node1"); len(got) != 0 {
		t.Errorf("of nobody: %q", got)
	}
}
