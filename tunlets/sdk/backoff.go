// SPDX-License-Identifier: Apache-2.0

package sdk

import "time"

// The first and the longest of a Backoff's pauses.
const (
	firstBackoff = 2 * time.Second
	lastBackoff  = 64 * time.Second
)

// Backoff is for how long to leave alone what was looked at in vain: a symptom may
// pass, and one that does not shall not cost a look every other second. The zero
// value is ready. It belongs to one goroutine.
type Backoff struct{ last time.Duration }

// Next returns the next pause: 2 s, then twice the last one, 64 s at most.
func (b *Backoff) Next() time.Duration {
	b.last = min(max(firstBackoff, 2*b.last), lastBackoff)
	return b.last
}

// Reset begins anew, after a look that was not in vain.
func (b *Backoff) Reset() { b.last = 0 }
