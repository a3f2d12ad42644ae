// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"

	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// state is who is looked for and who was looked at. It belongs to the goroutine of
// [Watcher.loop].
type state struct {
	log        *slog.Logger
	hub        *hub
	registered *registered
	decider    *decider
	board      *statusBoard
	unusable   map[string]string // registrations that mean nobody, to why; as logged

	// sweepAt is how many of the given processes, or of the hub's members, are too
	// many: twice those that were there when last it was looked which have ended.
	sweepAt int
	lost    uint64 // events, as logged
	round   int    // how often registrations were set
	left    int    // looks of this round that are not done
	ticks   int

	// Everybody is looked at again after losses, and not before the tick lookAgain then: in
	// pause ticks, which double for as long as events are lost.
	pause, lookAgain int
}

// register takes a set of registrations, and looks at who runs if it means others than
// before.
func (s *state) register(registrations []*attunev1.Registration) {
	if !s.take(registrations) {
		s.look()
	}
}

// take takes a set of registrations, and says whether it means whom that before meant.
func (s *state) take(registrations []*attunev1.Registration) (unchanged bool) {
	same, unusable, unchanged := s.registered.set(registrations)
	s.decider.gifts.dropRegistrations(same)
	for id, reason := range unusable {
		if s.unusable[id] != reason {
			s.log.Warn("registration means nobody on this node", "registration", id, "reason", reason)
		}
	}
	s.unusable = unusable
	return unchanged
}

// lifted looks at who runs, since what could not be read before can be now.
func (s *state) lifted() {
	s.take(s.registered.asked)
	s.look()
}

// look looks at who runs.
func (s *state) look() {
	s.round, s.left = s.round+1, 0
	s.want()
	s.scan()
	s.follow(s.round)
	s.looked()
}

// follow has it looked up what the paths of registrations name in the end. round is that of
// the look, 0 if nobody waits for it.
func (s *state) follow(round int) {
	for _, r := range s.registered.usable {
		if !r.follows() {
			continue
		}
		if s.decider.examiner.put(r.uid, func(ctx context.Context) examined { // AnyUser has a turn of its own
			target, _ := readTarget().Ask(ctx, s.decider.describer.readers, r.uid, r.GetExecutable()) // refused: tried again
			return examined{round: round, of: r, target: target}
		}) && round != 0 {
			s.left++
		}
	}
}

// want has the stream tell of what is looked for.
func (s *state) want() {
	if err := s.hub.want(s.registered.names()); err != nil {
		s.log.Warn("new processes of some registrations are not found", "error", err)
	}
}

// examined takes what a look has found out.
func (s *state) examined(found examined) {
	s.decider.examined(found)
	again := found.of != nil && s.registered.setTarget(found.of, found.target)
	if again {
		s.want()
		s.scan()
	}
	if found.round == s.round {
		s.left--
		s.looked()
	}
}

// looked tells that whoever ran was looked at, if that is so.
func (s *state) looked() {
	if s.left == 0 {
		s.board.registrations.Store(int64(len(s.registered.usable)))
	}
}

// sweep forgets processes that have ended, and returns those that there are, with
// when they started.
func (s *state) sweep() map[int]uint64 {
	mark := s.hub.mark() // who comes from now on may not be listed
	pids, err := procid.List()
	if err != nil {
		s.log.Warn("processes cannot be listed", "error", err)
		return nil
	}
	there := make(map[int]uint64, len(pids))
	for _, pid := range pids {
		if stat, err := procid.ReadStat(pid); err == nil && !stat.Zombie() {
			there[pid] = stat.StartTicks
		}
	}
	s.decider.gifts.prune(there)
	members := s.hub.prune(there, mark)
	s.sweepAt = max(leastSweep, 2*len(s.decider.gifts), 2*members)
	return there
}

// scan has everybody looked at.
func (s *state) scan() {
	s.decider.skipped = false
	there := s.sweep()
	if len(s.registered.usable) == 0 {
		return
	}
	// Parents before their children, which are then the same session's.
	for _, pid := range slices.SortedFunc(maps.Keys(there), func(a, b int) int {
		return cmp.Or(cmp.Compare(there[a], there[b]), cmp.Compare(a, b))
	}) {
		e := event{}
		e.PID, e.StartTicks = pid, there[pid]
		if s.decider.executed(e, s.round) {
			s.left++
		}
	}
}

const (
	// leastSweep is how many processes are remembered at least before those that
	// have ended are looked for.
	leastSweep = 4096
	// retryTicks is after how many ticks a registration is tried again that could
	// not be used: the node's directory of users may answer by then. So are processes that
	// were skipped.
	retryTicks = 60
	// followTicks is after how many ticks it is looked up again what paths name: a symbolic
	// link may lead elsewhere.
	followTicks = 10
	// mostPause is how many ticks lie at most between two looks at everybody while events are lost.
	mostPause = 64
)

// missed says whether events were lost since the last look, and when to look again.
func (s *state) missed(lost uint64) bool {
	if lost == s.lost {
		s.pause = 0
		return false
	}
	s.log.Warn("process events lost; short-lived processes may be missing", "lost", lost-s.lost)
	s.lost = lost
	s.pause = min(max(2*s.pause, 1), mostPause)
	s.lookAgain = s.ticks + s.pause
	return true
}

// tick looks whether events were lost.
func (s *state) tick(lost uint64) {
	s.ticks++
	if s.ticks >= s.lookAgain && s.missed(lost) {
		s.scan()
		return
	}
	if s.ticks%retryTicks == 0 && len(s.registered.usable) < len(s.registered.asked) {
		s.register(s.registered.asked)
	}
	if s.ticks%retryTicks == 0 && s.decider.skipped {
		s.scan()
	}
	if s.ticks%followTicks == 0 {
		s.follow(0)
	}
	if max(len(s.decider.gifts), s.hub.size()) > s.sweepAt {
		s.sweep()
	}
}
