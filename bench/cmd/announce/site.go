// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/attune-hpc/attune/bench/internal/measure"
	"github.com/attune-hpc/attune/internal/registry"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// site is the nodes, each with a client of its own.
type site struct {
	cancel  context.CancelFunc
	tasks   sync.WaitGroup
	clients []*registry.Node
	seen    chan sighting
}

// sighting is of one node that knows of one registration.
type sighting struct {
	id string
	at time.Time
}

// newSite makes the nodes and returns when all of them are connected.
func newSite(ctx context.Context, server *server, nodes int) (*site, error) {
	s := &site{seen: make(chan sighting, 2*nodes)}
	ctx, s.cancel = context.WithCancel(ctx)
	for i := range nodes {
		c, err := server.openNode(ctx, fmt.Sprint("node-", i))
		if err != nil {
			s.close()
			return nil, err
		}
		s.clients = append(s.clients, c)
		s.run(ctx, c, fmt.Sprint("host-", i))
	}
	for _, c := range s.clients {
		if err := measure.Await(ctx, time.Minute, "the connection of a node", c.Connected); err != nil {
			s.close()
			return nil, err
		}
	}
	return s, nil
}

// run does what attuned does with its client.
func (s *site) run(ctx context.Context, c *registry.Node, host string) {
	record := &attunev1.ControllerRecord{Id: host, Host: host, Version: "bench", Cpus: 64, Modes: []string{"watch"}}
	s.tasks.Go(func() {
		_ = c.Announce(ctx, nil, func() *attunev1.ControllerRecord { return record })
	})
	s.tasks.Go(func() {
		known := make(map[string]bool)
		_ = c.Watch(ctx, func(v registry.View) {
			now := time.Now()
			for id := range v.Registrations {
				if !known[id] {
					known[id] = true
					select {
					case s.seen <- sighting{id, now}:
					case <-ctx.Done():
					}
				}
			}
		})
	})
	s.tasks.Go(func() {
		_ = c.ServeLocate(ctx, host, func(*attunev1.LocateRequest) *attunev1.LocateResponse {
			return &attunev1.LocateResponse{Controller: host, Host: host}
		})
	})
}

// await returns, in milliseconds, how long each node took to know of a
// registration.
func (s *site) await(ctx context.Context, id string, began time.Time) ([]float64, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var took []float64
	for len(took) < len(s.clients) {
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%d of %d nodes know of %s: %w", len(took), len(s.clients), id, context.Cause(ctx))
		case one := <-s.seen:
			if one.id == id {
				took = append(took, measure.Milliseconds(one.at.Sub(began)))
			}
		}
	}
	return took, nil
}

func (s *site) close() {
	s.cancel()
	s.tasks.Wait()
	var all sync.WaitGroup
	for _, c := range s.clients {
		all.Go(c.Close)
	}
	all.Wait()
}
