// SPDX-License-Identifier: Apache-2.0

package uprobe

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cilium/ebpf"

	"github.com/attune-hpc/attune/controller/aggregate"
	"github.com/attune-hpc/attune/controller/bpf"
	"github.com/attune-hpc/attune/dmlib/abi"
)

// ErrTooManyWatches is returned when MaxWatches pairs of process and point are
// watched already, or 256 of those that capture.
var ErrTooManyWatches = errors.New("too many watched processes and points")

// keyTables hands out tables of aggregates by key, made when a watch needs one:
// a place takes 320 bytes of the kernel's memory. Guarded by watchTable.mu.
type keyTables struct {
	outer  *ebpf.Map
	tables []*keyTable
	free   []uint32
}

// keyTable is one of them.
type keyTable struct {
	number uint32
	places *ebpf.Map
	shared bpf.SharedArray[aggregate.Memory]
}

func (k *keyTables) open(outer *ebpf.Map) {
	k.outer = outer
	for i := range outer.MaxEntries() {
		k.free = append(k.free, i)
	}
}

// add makes a table of so many places.
func (k *keyTables) add(count int) (*keyTable, error) {
	if len(k.free) == 0 {
		return nil, ErrTooManyWatches
	}
	places, err := ebpf.NewMap(keyTableSpec(count))
	if err != nil {
		return nil, fmt.Errorf("table of %d keys: %w", count/2, err)
	}
	table := &keyTable{number: k.free[0], places: places}
	if table.shared, err = bpf.MapArray[aggregate.Memory](places); err != nil {
		return nil, errors.Join(fmt.Errorf("map keys: %w", err), places.Close())
	}
	if err := k.outer.Put(table.number, places); err != nil {
		return nil, errors.Join(fmt.Errorf("table of %d keys: %w", count/2, err), table.close())
	}
	k.free = k.free[1:]
	k.tables = append(k.tables, table)
	return table, nil
}

func keyTableSpec(count int) *ebpf.MapSpec {
	const mmapable, inner = 1 << 10, 1 << 12
	return &ebpf.MapSpec{
		Name: "key_table", Type: ebpf.Array, KeySize: 4, ValueSize: abi.AggregateBytes,
		MaxEntries: uint32(count), Flags: mmapable | inner,
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
		aggregate.Table(table.shared.Elements).Each(func(_ int, _ uint64, sums *aggregate.Memory) { sums.Reset(interval) })
	}
}

func (t *keyTable) close() error { return errors.Join(t.shared.Unmap(), t.places.Close()) }
