// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"google.golang.org/protobuf/proto"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// storeNano is when the stream was made; 0: there is none.
func (s stream) storeNano() int64 {
	if s.created.IsZero() {
		return 0
	}
	return s.created.UnixNano()
}

// take makes the copy equal to what an Analyzer has answered.
func (m *mirror) take(all *attunev1.OrdersResponse) {
	now := stream{created: time.Unix(0, all.GetStoreUnixNano()), last: all.GetRevision()}
	others := m.compare(now)
	var list []change
	if others == none {
		there := make(map[string]bool)
		for _, key := range all.GetKeys() {
			there[key] = true
		}
		m.each(func(key string, e entry) {
			if !e.missing && !there[key] {
				list = append(list, change{key: key, revision: now.last})
			}
		})
	}
	for _, order := range all.GetOrders() {
		list = append(list, m.change(order.GetKey(), order.GetRevision(), order.GetValue(), false))
	}
	m.apply(now, list, others)
}

// serveOrders answers what nodes ask for, with the other Analyzers in turn, until
// stop is called.
func (c *Client) serveOrders() (stop func()) {
	sub, err := c.nats.QueueSubscribe(subjectOrders+"*", "analyzers", func(m *nats.Msg) {
		// The subject says who asks, and nobody is answered elsewhere than there.
		node := m.Subject[len(subjectOrders):]
		if !strings.HasPrefix(m.Reply, inboxNodes+node+".") {
			return
		}
		if err := c.answerOrders(m); err != nil && c.ctx.Err() == nil {
			c.log.Warn("a node's question for registrations remains without answer", "node", node, "error", err)
		}
	})
	if err != nil {
		c.log.Error("nodes cannot ask this Analyzer for registrations", "error", err)
		return func() {}
	}
	return func() { _ = sub.Unsubscribe() }
}

// answerOrders sends what the store has and the asker has not.
func (c *Client) answerOrders(m *nats.Msg) error {
	q := new(attunev1.OrdersRequest)
	if err := proto.Unmarshal(m.Data, q); err != nil {
		return err
	}
	state, complete := c.orders.state()
	ahead := q.GetStoreUnixNano() != 0 && (state.storeNano() != q.GetStoreUnixNano() || state.last < q.GetRevision())
	if !complete || ahead {
		// The node knows of changes that this copy has not yet, or of a store that is
		// gone.
		ctx, cancel := context.WithTimeout(c.ctx, attempt)
		err := c.orders.refresh(ctx)
		cancel()
		if err != nil {
			return err
		}
	}
	for _, part := range c.orders.parts(q) {
		value, err := c.encode(part)
		if err == nil {
			err = m.Respond(value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// parts are the messages of an answer.
func (m *mirror) parts(q *attunev1.OrdersRequest) []*attunev1.OrdersResponse {
	m.mu.Lock()
	defer m.mu.Unlock()
	after := q.GetRevision()
	if m.stream.storeNano() != q.GetStoreUnixNano() || m.stream.last < after {
		after = 0
	}
	part := &attunev1.OrdersResponse{StoreUnixNano: m.stream.storeNano(), Revision: m.stream.last}
	parts, size := []*attunev1.OrdersResponse{part}, 0
	for key, e := range m.entries {
		if e.missing {
			continue
		}
		if size > partBytes {
			part, size = new(attunev1.OrdersResponse), 0
			parts = append(parts, part)
		}
		part.Keys = append(part.Keys, key)
		size += len(key)
		if e.revision > after {
			part.Orders = append(part.Orders, &attunev1.StoredOrder{Key: key, Revision: e.revision, Value: e.value})
			size += len(e.value)
		}
	}
	part.Last = true
	return parts
}
