// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"slices"
	"sync"

	"github.com/attune-hpc/attune/controller/member"
	"github.com/attune-hpc/attune/controller/source"
	"github.com/attune-hpc/attune/proto/attune/series"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// detailsPerRound bounds what a round reads of all processes together beside
// their signals: threads, sockets and pipes, at some 10 µs each. Who has to
// wait for the next round comes first there.
const detailsPerRound = 128

// detailing reads processes, with the details that the Analyzer wants.
type detailing struct {
	sources source.All
	foreign func(pid int) error // why a process must be left alone, if so

	mu     sync.Mutex                  // guards wanted; a leaf lock
	wanted map[uint64][]series.TableID // by process

	next uint64 // process that comes first in the next round; that of one goroutine
}

// set replaces what is wanted.
func (d *detailing) set(wants []*attunev1.TableWant) {
	wanted := make(map[uint64][]series.TableID, len(wants))
	for _, w := range wants {
		for _, table := range w.GetTables() {
			wanted[w.GetProcess()] = append(wanted[w.GetProcess()], series.TableID(table))
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wanted = wanted
}

// of returns what is wanted of a process.
func (d *detailing) of(handle uint64) []series.TableID {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.wanted[handle]
}

// inTurn puts the processes whose turn it is first.
func (d *detailing) inTurn(targets []*member.Member) []*member.Member {
	at := slices.IndexFunc(targets, func(t *member.Member) bool { return t.Handle() >= d.next })
	if at <= 0 {
		return targets
	}
	return slices.Concat(targets[at:], targets[:at])
}

// read reads a process: its signals, and details as far as there is room for
// them in the round. nil: it has just ended, which the tracker will tell.
func (d *detailing) read(t *member.Member, room *source.Room) *attunev1.Sample {
	return d.sources.Read(source.Process{Handle: t.Handle(), Identity: t.Identity(), Program: t}, d.due(t, room.Left()), room)
}

// due returns what is to be read of a process in a round that has so much
// room left. For want of room it comes first in the next one.
func (d *detailing) due(t *member.Member, room int) []series.TableID {
	kinds := d.of(t.Handle())
	switch {
	case len(kinds) == 0:
		return nil
	case room <= 0:
		if d.next == 0 {
			d.next = t.Handle()
		}
		return nil
	case d.foreign(t.PID()) != nil: // an exec may have given it to somebody else since it was taken in
		return nil
	}
	return kinds
}
