// SPDX-License-Identifier: Apache-2.0

package child

import (
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/policy"
	"github.com/attune-hpc/attune/internal/testing/patience"
)

// Where both directions are full, what each side has to answer does not keep it from
// reading: otherwise neither would ever write.
func TestStormInBothDirections(t *testing.T) {
	own, other, err := socketPair(unix.SOCK_SEQPACKET)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := connOf(other)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(own.SetWriteBuffer(1), conn.SetWriteBuffer(1)); err != nil { // the least that the kernel gives
		t.Fatal(err)
	}
	attuned := mustNew(t, NewPool(Options{}), new(steady)).served
	attuned.process = &process{conversation: newConversation(own, mostFromChild, 0)}
	asked := &requests{served: attuned, echo: newEcho(slog.New(slog.DiscardHandler))}
	c := newConversation(conn, mostToChild, 1)
	s := &session{conversation: c, lines: &lines{conversation: c, debug: new(atomic.Bool)}, events: newSource(c), finder: &finder{conversation: c}}

	var listening, storm sync.WaitGroup
	listening.Go(func() { _ = attuned.process.listen(asked.handle) }) // they end when both have hung up
	listening.Go(func() { _ = s.listen(s.handle) })
	ctx := patience.Context(t)
	for _, send := range []func() error{
		func() error { return attuned.process.tell(happened, event{}) },
		func() error { _, err := attuned.process.ask(ctx, ping, pinging{}, noFD, new(beating)); return err },
		func() error { return s.tell(logged, line{Message: "a line"}) },
		func() error { _, err := s.ask(ctx, rules, nil, noFD, new(policy.Text)); return err },
	} {
		storm.Go(func() {
			for range 2000 {
				if err := send(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	storm.Wait()
	_, _ = own.Close(), conn.Close()
	listening.Wait()
}
