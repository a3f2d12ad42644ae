// SPDX-License-Identifier: Apache-2.0

package embed

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	nats "github.com/nats-io/nats-server/v2/server"
	"golang.org/x/sys/unix"
)

const (
	// tendEvery is how often the server is looked after.
	tendEvery = time.Second
	// room is what has to be free on the disk before its store is opened again,
	// bytes.
	room = 1 << 20
)

// ErrStore is what is wrong with a registry whose disk is full or fails.
var ErrStore = errors.New("the registry keeps nothing: its disk is full or has failed")

// tend opens the store again when nats-server has given it up, which it does for good
// when a write has failed once. It returns when the server is closed.
func (s *Server) tend() {
	tick := time.NewTicker(tendEvery)
	defer tick.Stop()
	told := false
	for {
		select {
		case <-s.closed:
			return
		case <-tick.C:
		}
		if !s.broken.Load() && s.nats.Load().JetStreamEnabled() {
			told = false
			continue
		}
		err := s.reopen()
		switch {
		case err == nil:
			s.log.Warn("registry keeps records again")
		case !told:
			s.log.Error("registry keeps nothing; make room on its disk, it goes on by itself", "dir", s.options.Dir, "error", err)
			told = true
		}
	}
}

// reopen starts nats-server again, if there is room: it cannot open its store under
// those that it serves. They connect again. What was in memory only is lost: whoever is
// there announces itself again.
func (s *Server) reopen() error {
	if err := haveRoom(s.options.Dir); err != nil {
		return err
	}
	s.end()
	s.broken.Store(false)
	_, err := s.begin()
	if err != nil {
		s.broken.Store(true)
	}
	return err
}

// haveRoom returns an error if the disk takes no more.
func haveRoom(dir string) error {
	path := filepath.Join(dir, "room")
	err := os.WriteFile(path, make([]byte, room), 0o600)
	return errors.Join(err, os.Remove(path))
}

// full says whether a disk has no room for what comes next, which nobody need have written
// yet.
func full(dir string) bool {
	var disk unix.Statfs_t
	return unix.Statfs(dir, &disk) == nil && disk.Bavail*uint64(disk.Bsize) < room
}

// canBegin says whether a store can be opened now. One that is new waits for room: each bucket
// that nats-server cannot make costs it a descriptor, and it is asked again and again. One
// that is there can be read without.
func canBegin(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, nats.JetStreamStoreDir))
	return err == nil || haveRoom(dir) == nil
}

// Healthy returns what is wrong with the server, nil if nothing is.
func (s *Server) Healthy() error {
	now := s.nats.Load()
	switch {
	case s.stores() && (s.broken.Load() || full(s.options.Dir)):
		return ErrStore
	case !now.Running():
		return errors.New("the registry has ended")
	case s.stores() && !now.JetStreamEnabled():
		return ErrStore
	case !s.stores() && now.NumLeafNodes() == 0:
		return fmt.Errorf("the registry of the other site cannot be reached: %q", s.options.Remotes)
	}
	return nil
}
