// SPDX-License-Identifier: Apache-2.0

package uprobe

import (
	"sync/atomic"
)

// takeLost hands over how many records of each process found the ring full since
// the last call, as far as that is known: a hit under way when its watch is taken
// away counts in the ring's own sum alone. A process may come several times;
// visit must not call Uprobes.
func (t *watchTable) takeLost(visit func(process uint32, lost uint64)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for process, lost := range t.untold {
		visit(process, lost)
	}
	clear(t.untold)
	if t.watches.Elements == nil {
		return // closed
	}
	for key, entry := range t.index {
		if lost := t.newlyLost(entry); lost > 0 {
			visit(key.Process, lost)
		}
	}
}

// newlyLost returns what a watch has lost since the last call. The caller holds
// mu.
func (t *watchTable) newlyLost(entry *watchEntry) uint64 {
	lost := atomic.LoadUint64(&t.watches.Elements[entry.number].Lost)
	before := entry.told
	entry.told = lost
	return lost - before
}
