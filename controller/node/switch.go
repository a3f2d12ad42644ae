// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"log/slog"

	"github.com/attune-hpc/attune/internal/offswitch"
	"github.com/attune-hpc/attune/internal/turns"
)

// mainSwitch follows what switches Attune off on this node. It belongs to one
// goroutine at a time.
type mainSwitch struct {
	turns    *turns.Board
	off      func() (reason string, off bool)
	sessions *sessions
	auditor  auditor
	notes    *notes
	log      *slog.Logger
}

// watch follows the switch until ctx ends.
func (s *mainSwitch) watch(ctx context.Context) {
	_, was := s.sessions.switchedOff()
	loop := s.turns.Begin("main switch", standsAfter, true)
	defer loop.End()
	look := func() (string, bool) {
		loop.Turn()
		return s.off()
	}
	offswitch.Watch(ctx, offswitch.Interval, was, look, s.turn)
}

// look is for the start: nobody is found before it is known.
func (s *mainSwitch) look() {
	if reason, off := s.off(); off {
		s.turn(reason, off)
	}
}

// switchedOff begins the trouble of a node that is off.
const switchedOff = "switched off: "

// turn switches the node. Off ends all sessions, which gives everything back, and
// nobody is taken. What runs until it is switched on again stays with what was
// decided about it when it was found: it is left alone.
func (s *mainSwitch) turn(reason string, off bool) {
	if off {
		s.sessions.switchOff("attune is switched off on this node: " + reason)
		s.notes.trouble(switchedOff + reason)
		s.log.Warn("switched off: all sessions end, and no process is touched", "reason", reason)
		s.auditor.noteSwitch("off", reason)
		return
	}
	s.sessions.switchOn()
	s.notes.over(switchedOff)
	s.log.Info("switched on: processes are found again")
	s.auditor.noteSwitch("on", reason)
}
