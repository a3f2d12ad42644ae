// SPDX-License-Identifier: Apache-2.0

package link

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"time"

	"google.golang.org/grpc/credentials"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// ErrNotConnected says that there is no Analyzer at present, so that a message
// is lost. What must not be lost is told again when there is one.
var ErrNotConnected = errors.New("not connected to an analyzer")

// ErrOver says that the Analyzer has no such session, and will have none.
var ErrOver = errors.New("the session is over")

// Finder says where the Analyzer is. It may move while a Client runs.
type Finder interface {
	// Find waits until an Analyzer is known, or ctx ends. moved is closed when
	// it is to be asked again. A connection that fails leads to the next call,
	// which may give another address of the same Analyzer.
	Find(ctx context.Context) (peer Peer, moved <-chan struct{}, err error)
}

// Peer is an Analyzer that can be reached.
type Peer struct {
	// Address as gRPC writes it: HOST:PORT, or unix:PATH.
	Address string
	// Credentials of the connections; nil only for Unix sockets, whose peers
	// the kernel vouches for.
	Credentials credentials.TransportCredentials
	// Dial makes each connection, if not nil; the address is then for people only.
	Dial func(ctx context.Context) (net.Conn, error)
}

// Options say where the Analyzer is and who the controller is.
type Options struct {
	// Peer is the Analyzer. The Client ends with the connection to it.
	Peer Peer
	// Finder finds the Analyzer instead, and again whenever the connection is
	// lost or the Analyzer has moved. The Client is connected only between
	// Opened and Lost.
	Finder Finder
	// Hello introduces the controller; called for each connection.
	Hello func() *attunev1.ControllerHello
	// Living lists the handles of the processes that live, for each connection;
	// nil: none do at the first, which is the only one.
	Living func() []uint64
	// Opened is called with each connection that Finder led to, before any
	// message may leave by it but those that are handed to send, in order. It
	// calls open when others may. Needed with Finder.
	Opened func(send func(*attunev1.PublishRequest) error, open func())
	// Lost is called after a connection of Opened was lost. Needed with Finder.
	Lost func()
	// Undelivered is called with the loss of each message of Publish that does not reach
	// the Analyzer, and of those of TryPublish that were queued for a connection which
	// broke. What is sent is delivered when the Analyzer has acknowledged it, so what it
	// took just before the connection broke is handed here, too. May be called from
	// several goroutines and must not publish; nil: nobody counts them.
	Undelivered func(Loss)
	// Log may be nil.
	Log *slog.Logger

	pause pauses // between connections, for tests
}

// Handler executes one request from the Analyzer. It is called on one
// goroutine, in order, and answers through Client.Answer.
type Handler func(ctx context.Context, request *attunev1.ManageResponse)

// pauses between connections. The zero value stands for the defaults.
type pauses struct {
	// first and longest bound the time between a loss and the next attempt,
	// which doubles in between. 0: 100 ms and 10 s. Half of it is chance, so
	// that the controllers of a site do not come back all at once.
	first, longest time.Duration
	// silence is how long an Analyzer may say nothing. 0: 10 s.
	silence time.Duration
	// refusal is the least pause after one, times how many there were. 0: 1 s.
	refusal time.Duration
}

func (p pauses) withDefaults() pauses {
	p.first = cmp.Or(p.first, 100*time.Millisecond)
	p.longest = cmp.Or(p.longest, 10*time.Second)
	p.refusal = cmp.Or(p.refusal, time.Second)
	p.silence = cmp.Or(p.silence, 10*time.Second)
	return p
}

// after returns how long to wait after so many attempts in vain.
func (p pauses) after(failed int) time.Duration {
	pause := p.longest
	if failed < 16 { // else it overflows
		pause = min(p.first<<failed, p.longest)
	}
	return pause/2 + rand.N(pause/2+1)
}
