// SPDX-License-Identifier: Apache-2.0

package uprobe

import (
	"slices"
	"strings"
	"sync/atomic"
	"unsafe"

	"github.com/attune-hpc/attune/controller/aggregate"
	"github.com/attune-hpc/attune/internal/hits"
)

// textReady is TEXT_READY of include/uprobe_maps.h.
const textReady = 2

// keyReading is what was seen with a key.
type keyReading struct {
	place int
	key   hits.Key // without Has: it is not known yet what it is
	sums  Aggregate
	stack []uint64 // addresses that have no names yet, innermost first
}

// ReadKeys hands over what was seen so far with each key, in no order; visit
// must not keep the aggregate nor call Uprobes. It does nothing if the process is not
// watched at the point or the point has no keys. Keys that are no numbers have their
// hash for the value: stacks of the same functions may be several keys. It makes no
// system call but to name a stack that is new.
func (t *watchTable) ReadKeys(pid int, point uint16, of Interval, visit func(key hits.Key, a *Aggregate)) {
	readings, table, space := t.readKeys(pid, point, of)
	t.nameAll(readings, table, space)
	for i := range readings {
		if readings[i].key.Has {
			visit(readings[i].key, &readings[i].sums)
		}
	}
}

func (t *watchTable) readKeys(pid int, point uint16, of Interval) (readings []keyReading, table *keyTable, space Space) {
	t.mu.Lock()
	defer t.mu.Unlock()
	entry := t.index[uprobesWatchKey{Process: uint32(pid), Point: uint32(point)}]
	if entry == nil || entry.table == nil {
		return nil, nil, nil
	}
	table = entry.table
	aggregate.Table(table.places.shared.Elements).Each(func(place int, key uint64, sums *aggregate.Memory) {
		one := keyReading{place: place, key: hits.Key{Value: key, Has: true}, sums: t.readSums(sums, entry, of)}
		if table.names != nil {
			table.readText(&one)
		}
		readings = append(readings, one)
	})
	return readings, table, table.objects.space
}

// readText fills in what a key stands for, as far as that is known. The caller holds
// watchTable.mu.
func (t *keyTable) readText(one *keyReading) {
	if known, ok := t.names[one.place]; ok {
		one.key = known
		return
	}
	text := &t.texts.shared.Elements[one.place]
	if atomic.LoadUint32(&text.State) != textReady {
		one.key.Has = false // a hit is about to write it
		return
	}
	one.key.Cut = text.Cut != 0
	if t.objects.space != nil {
		one.key.Kind = hits.KeyStack
		one.stack = slices.Clone(text.Words[:min(int(text.Length)/8, len(text.Words))])
		return
	}
	one.key.Kind = hits.KeyString
	content := unsafe.Slice((*byte)(unsafe.Pointer(&text.Words[0])), len(text.Words)*8)
	one.key.Text = string(content[:min(int(text.Length), len(content))])
	t.names[one.place] = one.key
}

// nameAll names the stacks that have no names yet, by a space that may be closed meanwhile,
// without watchTable.mu: to read the symbols and rows of a file takes a while.
func (t *watchTable) nameAll(readings []keyReading, table *keyTable, space Space) {
	var unnamed []*keyReading
	for i := range readings {
		if len(readings[i].stack) > 0 {
			unnamed = append(unnamed, &readings[i])
		}
	}
	if len(unnamed) == 0 {
		return
	}
	var addresses []uint64
	for _, one := range unnamed {
		addresses = append(addresses, one.stack...)
	}
	table.naming.Lock() // what is mapped is told in the order in which it was found
	defer table.naming.Unlock()
	var now *mappedObjects
	if space.Renew(addresses) { // once: a process may have mapped very much
		now = readMapped(space, &t.memory.keys.objects.rows, &t.mu)
		defer now.forget()
	}
	for _, one := range unnamed {
		one.key.Text = nameStack(space, one.stack)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, one := range unnamed {
		table.names[one.place] = one.key
	}
	if now != nil && slices.Contains(t.memory.keys.tables, table) {
		// Without room the programs go on with the objects that they know.
		_ = t.memory.keys.objects.set(table.number, &table.objects, now)
	}
}

// nameStack names the functions of a stack, outermost first.
func nameStack(space Space, stack []uint64) string {
	names := make([]string, 0, len(stack))
	for i, address := range slices.Backward(stack) {
		names = append(names, space.Name(address, i > 0))
	}
	return strings.Join(names, hits.FrameSeparator)
}
