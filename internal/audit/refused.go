// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"net"
	"strings"
	"time"
)

const (
	// refusedAtOnce is how many connections that were not made get lines of
	// their own within refusedPeriod. The rest is counted: whoever is nobody
	// must not fill the disk, nor make old files be deleted.
	refusedAtOnce = 20
	// refusedPeriod is that time.
	refusedPeriod = time.Minute
)

// refusals bound the lines about connections that were not made.
type refusals struct {
	since time.Time // when the present period began
	lines int       // written in it
	more  uint64    // connections without a line
}

// Refused notes that a connection was not made; it is for
// [authn.Options].Refused.
func (l *Log) Refused(peer net.Addr, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	l.refused.pass(l)
	if l.refused.lines >= refusedAtOnce {
		l.refused.more++
		return
	}
	l.refused.lines++
	l.write(Entry{Event: Refused, From: address(peer), Error: err.Error()})
}

// address names where somebody is; those who connect to a Unix socket have no
// address.
func address(peer net.Addr) string {
	switch {
	case peer == nil:
		return ""
	case peer.Network() == "unix" && strings.Trim(peer.String(), "@") == "":
		return "unix"
	}
	return peer.String()
}

// pass begins a new period when the present one is over. The lock is held.
func (r *refusals) pass(l *Log) {
	// Monotonic: the clock of the wall may jump.
	if now := time.Now(); now.Sub(r.since) >= refusedPeriod {
		r.flush(l.tryWrite)
		r.since, r.lines = now, 0
	}
}

// flush writes how many had no line, and keeps what found no place. The lock is held.
func (r *refusals) flush(write func(Entry) uint64) {
	if r.more > 0 && write(Entry{Event: Refused, Count: r.more, Error: "more connections like those before"}) != 0 {
		r.more = 0
	}
}
