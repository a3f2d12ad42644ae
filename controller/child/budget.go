// SPDX-License-Identifier: Apache-2.0

package child

import (
	"fmt"
	"time"
)

// budget is the CPU time of a session's process: so much at once, and a share of each
// second from then on. Its methods are those of one goroutine.
type budget struct {
	burst time.Duration
	share float64 // of a core

	at      time.Time     // of the last look
	used    time.Duration // until then
	claimed time.Duration // of the burst
}

const (
	// cpuShare is five times what most of what is measured takes: 20 rounds a second over
	// 256 processes, 19 µs each (docs/reference/signals.md), are a tenth of a core.
	cpuShare = 0.5
	// cpuBurst is 150 of the worst files that package hostiletest makes, of 2 s each. An
	// endless loop has taken it after ten minutes.
	cpuBurst = 5 * time.Minute
)

func newBudget() *budget { return &budget{burst: cpuBurst, share: cpuShare} }

// spend takes the CPU time that a process has taken by now in its whole life. An error if
// that is too much.
func (b *budget) spend(now time.Time, used time.Duration) error {
	if b.at.IsZero() {
		b.at, b.used = now, used
		return nil
	}
	earned := time.Duration(b.share * float64(now.Sub(b.at)))
	b.claimed = max(0, b.claimed+used-b.used-earned)
	b.at, b.used = now, used
	if b.claimed > b.burst {
		return fmt.Errorf("it has taken %v of CPU time beyond %.2g of a core", b.claimed.Round(time.Second), b.share)
	}
	return nil
}
