// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"maps"
	"slices"

	"github.com/attune-hpc/attune/controller/bpf"
	"github.com/attune-hpc/attune/controller/entry"
	"github.com/attune-hpc/attune/controller/ring"
	"github.com/attune-hpc/attune/internal/objfile"
)

// leaveToKernel takes out the patches of functions that are about to get a
// uprobe. A uprobe belongs to the file: it stands in every process that maps
// it, its breakpoint in the place of the patch's jump, and the patch would
// count nothing any more without anybody noticing. It returns at once, with
// [entry.ErrActed] where a tuning action needs a patch to stay.
func (p *Placer) leaveToKernel(image objfile.Image, symbols []bpf.Symbol) error {
	keys := make([]entry.Key, 0, len(symbols))
	for _, s := range symbols {
		keys = append(keys, entry.Key{Device: image.Device, Inode: image.Inode, Offset: s.Offset})
	}
	patched, err := p.options.Functions.Leave(keys)
	if err != nil || len(patched) == 0 {
		return err
	}
	p.work.Go(func() {
		p.mu.Lock()
		tenants := slices.Collect(maps.Values(p.processes))
		p.mu.Unlock()
		for _, t := range tenants {
			t.leaveToKernel(patched)
		}
	})
	return nil
}

// leaveToKernel has uprobes serve the points that patches with these numbers
// serve.
func (t *tenant) leaveToKernel(numbers []int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	memory := t.process.Memory()
	if t.gone || memory == nil {
		return
	}
	for index, before := range maps.Clone(t.placed) {
		affected := slices.ContainsFunc(before.locals, func(local int) bool {
			return slices.Contains(numbers, local-ring.HookCount)
		})
		if before.mechanism != MechanismPatch || !affected {
			continue
		}
		t.placer.options.Leaving(t.process.Handle(), index)
		t.dropPatches(memory, before.locals, nil)
		delete(t.placed, index)
		t.show()
		var p *placement
		now, err := t.named(t.effective(index, before.spec))
		if err == nil {
			p, err = t.placeUprobe(index, now, "entry patches gave way to a uprobe; calls in between were not counted")
		}
		t.tell(index, before.spec, p, err)
	}
}
