// SPDX-License-Identifier: Apache-2.0

package session

import (
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// losses tells the sinks what was lost in the Analyzer. It belongs to the loop.
type losses struct {
	inbox    *inbox
	teller   *teller
	analyzer uint64            // events dropped in the inbox, as told
	told     map[string]uint64 // events not delivered, by tunlet
	before   map[string]uint64 // those of earlier instances
}

// add adds what an instance of a tunlet did not get to what the earlier ones did not.
// The tunlet is listed from then on.
func (l *losses) add(tunlet string, events uint64) { l.before[tunlet] += events }

// emit tells what has been lost since it was told last; running is what the running
// instance of a tunlet did not get.
func (l *losses) emit(running func(tunlet string) uint64) {
	var lost *attunev1.RecordedLosses
	if n := l.inbox.lost.Load(); n != l.analyzer {
		l.analyzer = n
		lost = &attunev1.RecordedLosses{}
	}
	for name, before := range l.before {
		n := before + running(name)
		if n == l.told[name] {
			continue
		}
		l.told[name] = n
		if lost == nil {
			lost = &attunev1.RecordedLosses{}
		}
		lost.Tunlets = append(lost.Tunlets, &attunev1.TunletLoss{Tunlet: name, Events: n})
	}
	if lost != nil {
		lost.Analyzer = l.analyzer
		l.teller.emit(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Losses{Losses: lost}})
	}
}
