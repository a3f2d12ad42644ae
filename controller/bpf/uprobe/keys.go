// SPDX-License-Identifier: Apache-2.0

package uprobe

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"

	"github.com/attune-hpc/attune/controller/bpf"
)

// keyTables hands out tables of aggregates by key, made when a watch needs one:
// a place takes 560 bytes of the kernel's memory. Guarded by watchTable.mu.
type keyTables struct {
	outer  *ebpf.Map
	tables []*keyTable
	free   []uint32
}

// keyTable is one of them: include/keyed.h.
type keyTable struct {
	number uint32
	places *ebpf.Map
	shared bpf.SharedArray[uprobesKeyed]
}

func (k *keyTables) open(outer *ebpf.Map) {
	k.outer = outer
	for i := range outer.MaxEntries() {
		k.free = append(k.free, i)
	}
}

// add makes a table for so many keys.
func (k *keyTables) add(keys int) (*keyTable, error) {
	if len(k.free) == 0 {
		return nil, ErrTooManyWatches
	}
	places, err := ebpf.NewMap(keyTableSpec(keys))
	if err != nil {
		return nil, fmt.Errorf("table of %d keys: %w", keys, err)
	}
	table := &keyTable{number: k.free[0], places: places}
	if table.shared, err = bpf.MapArray[uprobesKeyed](places); err != nil {
		return nil, errors.Join(fmt.Errorf("map keys: %w", err), places.Close())
	}
	for i := range table.shared.Elements {
		for j := range table.shared.Elements[i].Sums.Extremes {
			table.shared.Elements[i].Sums.Extremes[j].Min = math.MaxUint64
		}
	}
	if err := k.outer.Put(table.number, places); err != nil {
		return nil, errors.Join(fmt.Errorf("table of %d keys: %w", keys, err), table.close())
	}
	k.free = k.free[1:]
	k.tables = append(k.tables, table)
	return table, nil
}

// keyTableSpec: a power of two of places, at least twice as many as keys.
func keyTableSpec(keys int) *ebpf.MapSpec {
	const mmapable, inner = 1 << 10, 1 << 12
	return &ebpf.MapSpec{
		Name: "key_table", Type: ebpf.Array, KeySize: 4, ValueSize: uint32(unsafe.Sizeof(uprobesKeyed{})),
		MaxEntries: 2 << bits.Len(uint(max(keys, 1)-1)), Flags: mmapable | inner,
	}
}

// remove takes a table away, if there is one. Programs that are at it keep its
// memory until they are through.
func (k *keyTables) remove(table *keyTable) {
	if table == nil {
		return
	}
	k.tables = slices.DeleteFunc(k.tables, func(t *keyTable) bool { return t == table })
	// What replaces it, or the end of the outer map, drops the other hold.
	_ = k.outer.Delete(table.number)
	_ = table.close()
	k.free = append(k.free, table.number)
}

func (k *keyTables) close() error {
	var errs []error
	for _, table := range k.tables {
		errs = append(errs, table.close())
	}
	k.tables, k.free = nil, nil
	return errors.Join(errs...)
}

// reset empties the extremes of an interval in all tables.
func (k *keyTables) reset(interval uint32) {
	for _, table := range k.tables {
		for i := range table.shared.Elements {
			resetExtremes((*uprobesAggregate)(&table.shared.Elements[i].Sums), interval)
		}
	}
}

func (t *keyTable) close() error { return errors.Join(t.shared.Unmap(), t.places.Close()) }

// each calls visit for all keys, in no order.
func (t *keyTable) each(visit func(key uint64, sums *uprobesAggregate)) {
	for i := range t.shared.Elements {
		place := &t.shared.Elements[i]
		key := atomic.LoadUint64(&place.Key)
		if key != 0 || i == 0 && atomic.LoadUint64(&place.Used) != 0 {
			visit(key, (*uprobesAggregate)(&place.Sums))
		}
	}
}
