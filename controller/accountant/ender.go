// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
)

// endPause is how often processes are looked for that are to end.
const endPause = 5 * time.Millisecond

// ender ends all processes: SIGTERM, and SIGKILL when a grace is over, again and
// again until nothing is left, for some are forked meanwhile.
type ender struct {
	grace time.Duration
	group *group
	since time.Time       // when it began; zero: it has not
	asked map[living]bool // that got SIGTERM
}

// begin has the processes ended from now on.
func (e *ender) begin(at time.Time) {
	if !e.ending() {
		e.since, e.asked = at, make(map[living]bool)
	}
}

func (e *ender) ending() bool { return !e.since.IsZero() }

// press sends signals to those that are alive, if it was begun.
func (e *ender) press(alive []living, at time.Time) {
	if !e.ending() {
		return
	}
	if at.Sub(e.since) >= e.grace {
		e.group.kill()
		for _, p := range alive { // some may have left the group
			send(p, unix.SIGKILL)
		}
		return
	}
	for _, p := range alive {
		key := living{pid: p.pid, start: p.start}
		if !e.asked[key] {
			e.asked[key] = true
			send(p, unix.SIGTERM)
			send(p, unix.SIGCONT) // a stopped one does not see the other
		}
	}
}

// send sends a signal to a process, unless another has its number by now.
func send(p living, signal unix.Signal) {
	held, stat, err := procid.OpenStat(p.pid)
	if err != nil {
		return // it has ended
	}
	defer held.Close()
	if p.start != 0 && uint64(p.start/procid.Tick) != stat.StartTicks {
		return
	}
	_ = held.Signal(signal) // it may have ended
}
