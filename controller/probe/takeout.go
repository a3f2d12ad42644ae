// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"maps"
	"slices"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// remove takes points out, but not later ones with the same indexes. The caller
// holds t.mu.
func (t *tenant) remove(ctx context.Context, gone []wish) {
	var indexes []uint16
	for _, w := range gone {
		d, touched := t.degraded[w.index]
		touched = touched && d.spec == w.spec
		if touched {
			delete(t.degraded, w.index)
		}
		absent := t.recalled[w.index].spec == w.spec
		if absent {
			delete(t.recalled, w.index)
		}
		if p := t.placed[w.index]; p != nil && p.spec == w.spec || touched && d.before != nil || absent {
			indexes = append(indexes, w.index)
		}
	}
	t.takeOut(ctx, indexes...)
	t.show()
	for _, index := range indexes {
		t.placer.options.Status(&attunev1.PointStatus{
			Point: uint32(index), Process: t.process.Handle(), State: attunev1.PointState_POINT_STATE_REMOVED,
		})
	}
}

func (t *tenant) removeAll(ctx context.Context) {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer t.begin()()
	t.takeOut(ctx, slices.Collect(maps.Keys(t.placed))...)
}

// takeOut stops what serves points and gives their GOT slots back. Stubs stay
// bound: a child forked meanwhile may still call through them. The caller
// holds t.mu.
func (t *tenant) takeOut(ctx context.Context, indexes ...uint16) {
	var gone []*placement
	var locals []int
	indexes = slices.DeleteFunc(slices.Clone(indexes), func(index uint16) bool { return t.placed[index] == nil })
	if len(indexes) == 0 {
		return
	}
	t.placer.options.Leaving(t.process.Handle(), indexes...)
	for _, index := range indexes {
		p := t.placed[index]
		gone, locals = append(gone, p), append(locals, p.locals...)
		delete(t.placed, index)
	}
	t.show()
	if memory := t.process.Memory(); memory != nil {
		writer := slotWriter{memory: memory, app: memory.App(), process: t.process}
		t.turnOff(ctx, writer, locals)
		t.dropPatches(memory, locals, nil)
		if t.batch != nil && t.batch.patches != nil {
			t.batch.patches.Leave()
		}
	}
	for i, p := range gone {
		t.unwatch(indexes[i], p)
	}
}

// forget drops everything of a process that has ended.
func (t *tenant) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.gone = true
	for index, p := range t.placed {
		t.unwatch(index, p)
	}
	clear(t.placed)
	clear(t.degraded)
	t.show()
}
