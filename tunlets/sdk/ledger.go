// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"maps"
	"slices"
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// ledger knows which hits should be in a batch of aggregates, so that what is
// missing from it is unknown, and not zero, and how their values are to be read. The zero
// value is empty. Guarded by the server's turn.
type ledger struct {
	// signed are points whose values may be negative, also those that the tunlet has given back:
	// hits of before come after that.
	signed  map[string]bool
	hosts   map[Handle]string // of running processes
	entries map[string]map[place]*entry
}

// place is a measure point in a process, by the tunlet's name for the point.
type place struct {
	point   string
	process Handle
}

// entry is what is known of a place.
type entry struct {
	off     bool      // the overhead budget leaves nothing of it
	partial bool      // it was off: its next interval is not whole
	counted bool      // it was in a batch
	from    time.Time // start of the interval of that batch
}

// started notes where a process runs: a batch is about the processes of one host.
func (l *ledger) started(p *attunev1.Process) {
	if l.hosts == nil {
		l.hosts = map[Handle]string{}
	}
	l.hosts[Handle(p.GetHandle())] = p.GetHost()
}

func (l *ledger) ended(p Handle) {
	l.drop(func(at place) bool { return at.process == p })
	delete(l.hosts, p)
}

// asked notes what a point that the tunlet asks for has as values.
func (l *ledger) asked(p *attunev1.MeasurePoint) {
	delete(l.signed, p.GetId())
	if !attunev1.SignedCapture(p, p.GetValueCapture()) {
		return
	}
	if l.signed == nil {
		l.signed = map[string]bool{}
	}
	l.signed[p.GetId()] = true
}

// removed expects nothing more of a point that the tunlet gave back.
func (l *ledger) removed(point string) {
	l.drop(func(at place) bool { return at.point == point })
}

func (l *ledger) drop(of func(place) bool) {
	for host, entries := range l.entries {
		maps.DeleteFunc(entries, func(at place, _ *entry) bool { return of(at) })
		if len(entries) == 0 {
			delete(l.entries, host)
		}
	}
}

// changed takes what became of a point in a process.
func (l *ledger) changed(point string, s *attunev1.PointStatus) {
	at := place{point, Handle(s.GetProcess())}
	host, known := l.hosts[at.process]
	if !known {
		return
	}
	entries := l.entries[host]
	if entries == nil {
		if l.entries == nil {
			l.entries = map[string]map[place]*entry{}
		}
		entries = map[place]*entry{}
		l.entries[host] = entries
	}
	if entries[at] == nil {
		entries[at] = &entry{}
	}
	switch e := entries[at]; s.GetState() {
	case attunev1.PointState_POINT_STATE_PLACED:
		e.off = false
	case attunev1.PointState_POINT_STATE_OFF:
		e.off, e.partial = true, true
	default:
		delete(entries, at)
	}
}

// unknown takes a batch, and lists the processes of its host of which it does
// not have all hits, in order.
func (l *ledger) unknown(a Aggregates) []Handle {
	if len(a.Items) == 0 {
		return nil
	}
	host, known := l.hosts[a.Items[0].Process]
	if !known {
		return nil
	}
	told := make(map[place]bool, len(a.Items))
	for _, item := range a.Items {
		told[place{item.Point, item.Process}] = true
	}
	missing := map[Handle]bool{}
	for at, e := range l.entries[host] {
		switch {
		case !told[at]:
			if e.counted || e.off {
				missing[at.process] = true
			}
			continue
		case e.partial, e.counted && e.from.Equal(a.From): // its first part came apart
			missing[at.process] = true
		}
		e.counted, e.from = true, a.From
		e.partial = e.off
	}
	return slices.Sorted(maps.Keys(missing))
}
