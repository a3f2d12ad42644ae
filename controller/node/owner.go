// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/controller/link"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// owners knows which Analyzer has which registration. Its methods may be called
// from any goroutine.
type owners struct {
	mu sync.Mutex // guards what follows; a leaf lock
	of map[string]*owner
}

// owner is who has a registration; nil record: nobody.
type owner struct {
	record *attunev1.OwnerRecord
	moved  chan struct{} // closed when it is somebody else
}

func newOwners() *owners { return &owners{of: make(map[string]*owner)} }

// set takes the owners of all registrations.
func (o *owners) set(records map[string]*attunev1.OwnerRecord) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for id, now := range o.of {
		// One that nobody has is forgotten: each job of a batch system may be a
		// registration. Whoever waits for it asks again.
		if record := records[id]; record == nil || !sameOwner(now.record, record) {
			close(now.moved)
			delete(o.of, id)
		}
	}
	for id, record := range records {
		if o.of[id] == nil {
			o.of[id] = &owner{record: record, moved: make(chan struct{})}
		}
	}
}

// sameOwner says whether nothing has changed that matters to a connection.
func sameOwner(a, b *attunev1.OwnerRecord) bool {
	return a.GetEpoch() == b.GetEpoch() && proto.Equal(a.GetAnalyzer(), b.GetAnalyzer())
}

// get returns the Analyzer of a registration, nil if there is none, and what is
// closed when that changes.
func (o *owners) get(id string) (*attunev1.AnalyzerRecord, <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.of[id]
	if now == nil {
		now = &owner{moved: make(chan struct{})}
		o.of[id] = now
	}
	return now.record.GetAnalyzer(), now.moved
}

var _ link.Finder = (*finder)(nil)

// finder leads the controller of one session to the Analyzer of its
// registration. It belongs to one goroutine.
type finder struct {
	owners       *owners
	registration string
	host         string
	credentials  credentials.TransportCredentials
	tried        int // addresses so far
}

// Find implements link.Finder.
func (f *finder) Find(ctx context.Context) (link.Peer, <-chan struct{}, error) {
	for {
		analyzer, moved := f.owners.get(f.registration)
		if addresses := reachable(analyzer, f.host); len(addresses) > 0 {
			address := addresses[f.tried%len(addresses)]
			f.tried++
			return link.Peer{Address: address, Credentials: f.credentials}, moved, nil
		}
		select {
		case <-ctx.Done():
			return link.Peer{}, nil, ctx.Err()
		case <-moved:
			f.tried = 0
		}
	}
}

// reachable lists the addresses of an Analyzer that mean something on a host,
// the nearest first.
func reachable(analyzer *attunev1.AnalyzerRecord, host string) []string {
	var near, far []string
	for _, address := range analyzer.GetAddresses() {
		switch {
		case !strings.HasPrefix(address, "unix:"):
			far = append(far, address)
		case analyzer.GetHost() == host:
			near = append(near, address)
		}
	}
	return slices.Concat(near, far)
}
