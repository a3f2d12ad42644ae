// SPDX-License-Identifier: Apache-2.0

package discover

// member is a process of a view.
type member struct {
	view   uint32
	start  uint64 // clock ticks since boot; 0 if unknown
	known  uint64 // when it was alive, in nanoseconds of the monotonic clock; 0: it was told of by its fork
	number uint64 // of members so far
}

// bornBy says whether a fork is the member's own, told after it was added: not that of
// another process, which has its number by now.
func (m member) bornBy(fork event) bool {
	if fork.StartTicks != 0 {
		return fork.StartTicks == m.start
	}
	return fork.Time < m.known
}
