// SPDX-License-Identifier: Apache-2.0

package child

import (
	"context"
	"errors"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/link"
	"github.com/attune-hpc/attune/internal/testing/patience"
)

// here is an Analyzer that is found at once, and does not move.
type here struct{}

func (here) Find(context.Context) (link.Peer, <-chan struct{}, error) {
	return link.Peer{Address: "here"}, nil, nil
}

// A session that looks for its Analyzer again and again, each time after the answer, keeps
// to the protocol, however close upon the answer.
func TestFindsAgain(t *testing.T) {
	own, other, err := socketPair(unix.SOCK_SEQPACKET)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := connOf(other)
	if err != nil {
		t.Fatal(err)
	}
	attuned := mustNew(t, NewPool(Options{}), new(steady)).served
	attuned.config.Analyzer = here{}
	attuned.process = &process{conversation: newConversation(own, mostFromChild, 0)}
	asked := newRequests(attuned)
	c := newConversation(conn, mostToChild, 1)

	var listening sync.WaitGroup
	listening.Go(func() { attuned.cancel(attuned.process.listen(asked.handle)) }) // they end when both have hung up
	listening.Go(func() { _ = c.listen(nil) })
	ctx, finder := patience.Context(t), &finder{conversation: c}
	for range 2000 {
		if peer, _, err := finder.Find(ctx); err != nil || peer.Address != "here" {
			t.Fatalf("%+v, %v", peer, err)
		}
	}
	_ = errors.Join(own.Close(), conn.Close())
	listening.Wait()
	asked.close()
	attuned.work.Wait()
}
