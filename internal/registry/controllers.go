// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"google.golang.org/protobuf/proto"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	// controllersTTL is how many times longer a controller's record lives than
	// that of an Analyzer: nobody takes over from it, and there are many.
	controllersTTL = 3
	// controllersOfNode bounds how many one node can be: one of root's, some of
	// users', and those that died without a word.
	controllersOfNode = 64
)

// controllers are those that this Analyzer has heard of. Every Analyzer hears
// all of them, and asks for them when it connects.
type controllers struct {
	life time.Duration

	mu   sync.Mutex
	byID map[string]map[string]heard // by node and id, as tokens
}

// heard is a controller's record, as it came. It must not be changed.
type heard struct {
	*attunev1.ControllerRecord
	// name is NODE.ID of its subjects.
	name string
	at   time.Time
}

func newControllers(life time.Duration) *controllers {
	return &controllers{life: life, byID: make(map[string]map[string]heard)}
}

// Controllers returns the controllers that live, by host names; they are the
// caller's own. They are those
// that this client has heard of since it has connected: a moment later, all.
func (c *Client) Controllers() []*attunev1.ControllerRecord {
	var records []*attunev1.ControllerRecord
	for _, one := range c.controllers.list() {
		records = append(records, proto.CloneOf(one.ControllerRecord))
	}
	return records
}

// followControllers hears of controllers until ctx ends.
func (c *Client) followControllers(ctx context.Context) {
	sub, err := c.nats.Subscribe(subjectControllers+">", func(m *nats.Msg) {
		if err := c.controllers.hear(m); err != nil {
			c.log.Warn("a controller's record cannot be read", "subject", m.Subject, "error", err)
		}
	})
	if err != nil {
		c.log.Error("registry cannot be watched for controllers", "error", err)
		return
	}
	defer func() { _ = sub.Unsubscribe() }()
	linked := make(chan struct{}, 1)
	defer c.link.listen(linked)()
	for {
		// At first, too: a connection that stood before listen rings for nobody.
		if err := c.nats.Publish(subjectRoll, nil); err != nil {
			c.log.Debug("controllers are not asked for their records", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-linked:
		}
	}
}

// hear takes what a controller says.
func (s *controllers) hear(m *nats.Msg) error {
	name := m.Subject[len(subjectControllers):]
	node, id, _ := strings.Cut(name, ".")
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(m.Data) == 0 {
		delete(s.byID[node], id)
		return nil
	}
	record := new(attunev1.ControllerRecord)
	if err := proto.Unmarshal(m.Data, record); err != nil {
		return err
	}
	own := s.byID[node]
	if own == nil {
		own = make(map[string]heard)
		s.byID[node] = own
	}
	own[id] = heard{record, name, time.Now()}
	if len(own) > controllersOfNode {
		delete(own, oldest(own))
	}
	return nil
}

// oldest returns who has been silent for longest.
func oldest(of map[string]heard) (id string) {
	for key, one := range of {
		if id == "" || one.at.Before(of[id].at) {
			id = key
		}
	}
	return id
}

// list returns those that live, by host names, and forgets the others.
func (s *controllers) list() (live []heard) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for node, own := range s.byID {
		for id, one := range own {
			if time.Since(one.at) > s.life {
				delete(own, id)
				continue
			}
			live = append(live, one)
		}
		if len(own) == 0 {
			delete(s.byID, node)
		}
	}
	slices.SortFunc(live, func(a, b heard) int {
		return cmp.Or(strings.Compare(a.GetHost(), b.GetHost()), strings.Compare(a.GetId(), b.GetId()))
	})
	return live
}
