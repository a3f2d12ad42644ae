// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/internal/authn"
	"github.com/attune-hpc/attune/internal/beat"
	"github.com/attune-hpc/attune/internal/queue"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// settle is how long changes of a record are gathered, so that one who has many
// to tell does not fill the registry with them.
const settle = 200 * time.Millisecond

// Node is the registry as a node has it: what is registered, to be read, and its
// own record, to be told. It has no access to the store: an Analyzer says what
// lies there, and the store itself tells of changes. Its methods may be called
// by many goroutines.
type Node struct {
	*conn

	token  string
	orders *mirror
}

// OpenNode is Open for a node.
func OpenNode(ctx context.Context, o Options) (*Node, error) {
	token := tokenOf(o.name())
	conn, err := open(ctx, o, inboxNodes+token)
	if err != nil {
		return nil, err
	}
	n := &Node{conn: conn, token: token}
	n.orders = newMirror(conn, bucketOrders, n.read)
	return n, nil
}

// name is that of this side, as the registry has it of the certificate or of the
// kernel.
func (o Options) name() string {
	if o.Identity == nil || strings.HasPrefix(o.URL, unixScheme) {
		return authn.Self().GetName()
	}
	return o.Identity.Leaf().Subject.CommonName
}

// Watch calls f with everything that is registered, and again with everything
// after each change, until ctx ends, whose cause it returns. Calls follow each
// other; changes that come during one are all in the next. While the registry
// is away there is none. f must return soon after ctx has ended.
func (n *Node) Watch(ctx context.Context, f func(View)) error {
	return n.follow(ctx, n.orders, func() error { return n.heed(n.orders) }, f)
}

// Announce keeps a controller's record at all Analyzers until ctx ends, whose
// cause it returns: at first, when changed rings, when an Analyzer asks, and in
// intervals. record returns it as it is then, its id always the same.
func (n *Node) Announce(ctx context.Context, changed queue.Bell, record func() *attunev1.ControllerRecord) error {
	asked := queue.NewBell()
	sub, err := n.nats.Subscribe(subjectRoll, func(*nats.Msg) { asked.Ring() })
	if err != nil {
		return err
	}
	defer func() { _ = sub.Unsubscribe() }()
	linked := queue.NewBell()
	defer n.link.listen(linked)()
	subject := subjectControllers + n.token + "." + tokenOf(record().GetId())
	defer n.leave(subject)
	loop := n.options.Turns.Begin("announcement", time.Minute+n.options.TTL, true)
	defer loop.End()
	for {
		loop.Turn()
		n.tell(subject, record())
		timer := time.NewTimer(n.options.TTL - rand.N(n.options.TTL/4+1))
		select {
		case <-ctx.Done():
		case <-n.ctx.Done():
		case <-timer.C:
		case <-linked:
		case <-asked: // and all others at one moment
			beat.Pause(ctx, rand.N(settle))
		case <-changed:
			beat.Pause(ctx, settle)
		}
		timer.Stop()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if n.ctx.Err() != nil {
			return ErrClosed
		}
	}
}

// tell publishes a record; what is lost is told again.
func (n *Node) tell(subject string, record *attunev1.ControllerRecord) {
	value, err := n.encode(record)
	if err == nil {
		err = n.nats.Publish(subject, value)
	}
	if err != nil && !errors.Is(err, nats.ErrReconnectBufExceeded) {
		n.log.Warn("registry does not take the record, trying again", "id", record.GetId(), "error", err)
	}
}

// leave says good-bye.
func (n *Node) leave(subject string) {
	if n.Connected() {
		_ = n.nats.Publish(subject, nil)
		_ = n.nats.FlushTimeout(goodbye) // else the record ends by age
	}
}

// read brings the copy up to date by asking an Analyzer.
func (n *Node) read(ctx context.Context, m *mirror) error {
	question, err := proto.Marshal(&attunev1.OrdersRequest{StoreUnixNano: m.stream.storeNano(), Revision: m.stream.last})
	if err != nil {
		return err
	}
	var all attunev1.OrdersResponse
	var broken error
	err = gather(ctx, n.nats, []string{subjectOrders + n.token}, question, firstWithin, func(_ int, answer *nats.Msg) time.Duration {
		part := new(attunev1.OrdersResponse)
		broken = proto.Unmarshal(answer.Data, part)
		proto.Merge(&all, part)
		if broken != nil || part.GetLast() {
			return 0
		}
		return attempt
	})
	switch {
	case err != nil:
		return err
	case broken != nil:
		return fmt.Errorf("answer of an Analyzer: %w", broken)
	case !all.GetLast():
		return ErrNoAnalyzer
	}
	m.take(&all)
	return nil
}
