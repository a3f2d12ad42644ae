// SPDX-License-Identifier: Apache-2.0

package queue

// Bell wakes one goroutine, which receives from it. However often it is rung
// before that, the goroutine wakes once.
type Bell chan struct{}

// NewBell returns a Bell that was not rung.
func NewBell() Bell { return make(Bell, 1) }

// Ring wakes whoever receives, at once or when it receives next. It never waits.
func (b Bell) Ring() {
	select {
	case b <- struct{}{}:
	default:
	}
}
