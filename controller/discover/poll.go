// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/attune-hpc/attune/controller/track"
	"github.com/attune-hpc/attune/internal/beat"
	"github.com/attune-hpc/attune/internal/procid"
)

// poller makes events of what it finds in /proc at an interval. What lives
// shorter than that it misses.
type poller struct {
	passive

	interval time.Duration
	scans    int
	known    map[int]*polled
}

// polled is a process as it was last seen.
type polled struct {
	start uint64
	image procid.Image
	since int // scan that found it
	seen  int // last scan that it was listed in
	dead  bool
}

const (
	// youngScans is for how many scans a process is looked at each time: most
	// execs follow the fork at once.
	youngScans = 10
	// oldEvery is in which of so many scans it is looked at later.
	oldEvery = 10
)

// newPoller takes note of who runs already: they are found by others, later, and
// what they execute after that is told.
func newPoller(interval time.Duration) *poller {
	p := &poller{interval: interval, known: make(map[int]*polled)}
	p.scan(func(event) {})
	return p
}

func (*poller) mode() string { return ModePoll }

func (*poller) lost() uint64 { return 0 }

func (*poller) close() error { return nil }

func (p *poller) run(ctx context.Context, handle func(event)) error {
	beat.Tick(ctx, p.interval, func(time.Time) { p.scan(handle) })
	return nil
}

// scan tells what is new since the last one: ends first, since their numbers
// may be in use again, then births in their order.
func (p *poller) scan(handle func(event)) {
	pids, err := procid.List()
	if err != nil {
		return // the next scan finds what this one did not
	}
	p.scans++
	var born []procid.Stat
	for _, pid := range pids {
		if stat, ok := p.look(pid, handle); ok {
			born = append(born, stat)
		}
	}
	for pid, k := range p.known {
		if k.seen == p.scans {
			continue
		}
		delete(p.known, pid)
		if !k.dead {
			handle(event{Event: track.Event{Kind: track.Exit, PID: pid, Last: true}})
		}
	}
	slices.SortFunc(born, func(a, b procid.Stat) int {
		return cmp.Or(cmp.Compare(a.StartTicks, b.StartTicks), cmp.Compare(a.PID, b.PID))
	})
	for _, stat := range born {
		p.known[stat.PID] = &polled{start: stat.StartTicks, image: stat.Image, since: p.scans, seen: p.scans}
		handle(event{Event: track.Event{Kind: track.Fork, PID: stat.PID, Parent: stat.ParentPID, StartTicks: stat.StartTicks}})
		handle(event{Event: track.Event{Kind: track.Exec, PID: stat.PID, StartTicks: stat.StartTicks}})
	}
}

// look tells what became of a process, and returns its stat file if it is new.
func (p *poller) look(pid int, handle func(event)) (procid.Stat, bool) {
	k := p.known[pid]
	if k != nil && p.scans-k.since > youngScans && (p.scans+pid)%oldEvery != 0 {
		k.seen = p.scans
		return procid.Stat{}, false
	}
	stat, err := procid.ReadStat(pid)
	if err != nil {
		return procid.Stat{}, false // it has ended: not seen
	}
	switch {
	case k == nil:
		return stat, !stat.Zombie()
	case k.start != stat.StartTicks:
		return stat, !stat.Zombie() // and not seen: the former one has ended
	}
	k.seen = p.scans
	switch {
	case stat.Zombie() && !k.dead:
		k.dead = true
		handle(event{Event: track.Event{Kind: track.Exit, PID: pid, Last: true, StartTicks: k.start}})
	case stat.Image != k.image && stat.Image != procid.Image{} && !stat.Leaderless():
		k.image, k.since = stat.Image, p.scans
		handle(event{Event: track.Event{Kind: track.Exec, PID: pid, StartTicks: k.start}})
	}
	return procid.Stat{}, false
}
