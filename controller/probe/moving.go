// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"maps"
	"slices"
	"time"
)

// moveOut drops everything of a process that goes on, and for which another tenant comes: its
// points will be served by other means. What was counted is delivered before. It returns which
// points were there.
func (t *tenant) moveOut() map[uint16]absence {
	t.mu.Lock()
	defer t.mu.Unlock()
	moved := t.moved // not there yet
	if moved == nil {
		moved = make(map[uint16]absence)
	}
	for index, r := range t.recalled {
		moved[index] = r.absence
	}
	if len(t.placed) > 0 {
		t.options.Leaving(t.process.Handle(), slices.Collect(maps.Keys(t.placed))...)
	}
	for index, d := range t.degraded {
		if d.before != nil {
			moved[index] = absence{spec: d.spec, since: time.Now(), late: d.before.late}
		}
	}
	for index, p := range t.placed {
		moved[index] = absence{spec: p.spec, since: time.Now(), late: p.late}
	}
	t.drop()
	return moved
}

// forget drops everything of a process that has ended.
func (t *tenant) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drop()
}

// drop stops what the kernel does for the process. The caller holds t.mu.
func (t *tenant) drop() {
	t.gone = true
	for index, p := range t.placed {
		t.uprobes.stop(index, p)
	}
	clear(t.placed)
	clear(t.degraded)
	t.show()
}
