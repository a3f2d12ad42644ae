// SPDX-License-Identifier: Apache-2.0

package embed

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	nats "github.com/nats-io/nats-server/v2/server"
)

// tendEvery is how often the server is looked after.
const tendEvery = 5 * time.Second

// ErrDisabled is what is wrong with a registry whose store was given up.
var ErrDisabled = errors.New("the registry keeps nothing: its disk was full or failed")

// tender turns a store on again that nats-server has given up: it does so for
// good when a disk is full once.
type tender struct {
	done  chan struct{}
	tasks sync.WaitGroup
}

func (s *Server) startTending() *tender {
	t := &tender{done: make(chan struct{})}
	if len(s.options.Remotes) == 0 {
		t.tasks.Go(func() { s.tendStore(t.done) })
	}
	return t
}

func (t *tender) stop() {
	close(t.done)
	t.tasks.Wait()
}

func (s *Server) tendStore(done <-chan struct{}) {
	tick := time.NewTicker(tendEvery)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
		}
		if s.nats.JetStreamEnabled() {
			continue
		}
		err := s.nats.EnableJetStream(&nats.JetStreamConfig{
			StoreDir: filepath.Join(s.options.Dir, "jetstream"), SyncInterval: syncEvery,
		})
		if err != nil {
			s.log.Error("registry keeps nothing, trying again; make room on its disk", "dir", s.options.Dir, "error", err)
			continue
		}
		s.log.Warn("registry keeps records again")
	}
}

// Healthy returns what is wrong with the server, nil if nothing is.
func (s *Server) Healthy() error {
	if !s.nats.Running() {
		return errors.New("the registry has ended")
	}
	if len(s.options.Remotes) == 0 && !s.nats.JetStreamEnabled() {
		return ErrDisabled
	}
	if len(s.options.Remotes) > 0 && s.nats.NumLeafNodes() == 0 {
		return fmt.Errorf("the registry of the other site cannot be reached: %q", s.options.Remotes)
	}
	return nil
}
