// SPDX-License-Identifier: Apache-2.0

package uprobe

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/cilium/ebpf"

	"github.com/attune-hpc/attune/controller/aggregate"
	"github.com/attune-hpc/attune/controller/capture"
	"github.com/attune-hpc/attune/internal/hits"
)

// ErrTooManyWatches is returned when MaxWatches pairs of process and point are
// watched already, or 256 of those that capture.
var ErrTooManyWatches = errors.New("too many watched processes and points")

// keyTables hands out tables of aggregates by key, made when a watch needs one: a
// place takes 320 bytes of the kernel's memory, and 528 more where keys are no
// numbers. Guarded by watchTable.mu.
type keyTables struct {
	outer, texts *ebpf.Map
	objects      objectTables
	tables       []*keyTable
	free         []uint32
}

// keyTable is one of them.
type keyTable struct {
	naming sync.Mutex // held while stacks are named; before watchTable.mu, which guards the rest

	number  uint32
	places  innerTable[aggregate.Memory]
	texts   innerTable[uprobesKeyText] // of keys that are no numbers
	objects stackObjects               // of stacks
	names   map[int]hits.Key           // of texts, by place, as far as they were read
}

func (k *keyTables) open(from *uprobeMaps) {
	k.outer, k.texts = from.KeyTables, from.TextTables
	k.objects.open(from)
	for i := range k.outer.MaxEntries() {
		k.free = append(k.free, i)
	}
}

// add makes a table for the keys of a program; stacks are those of a
// process that has mapped this.
func (k *keyTables) add(program capture.Program, mapped *mappedObjects) (*keyTable, error) {
	if len(k.free) == 0 {
		return nil, ErrTooManyWatches
	}
	table := &keyTable{number: k.free[0]}
	if err := k.fill(table, program, mapped); err != nil {
		return nil, errors.Join(fmt.Errorf("table of %d keys: %w", program.MaxKeys, err), k.empty(table))
	}
	k.free = k.free[1:]
	k.tables = append(k.tables, table)
	return table, nil
}

// fill makes what a table consists of, what the programs begin with last.
func (k *keyTables) fill(table *keyTable, program capture.Program, mapped *mappedObjects) (err error) {
	count := program.Places()
	if program.KeyText() {
		table.names = make(map[int]hits.Key)
		if table.texts, err = newInnerTable[uprobesKeyText](k.texts, table.number, count); err != nil {
			return err
		}
	}
	if program.KeyStack() {
		if err := k.objects.set(table.number, &table.objects, mapped); err != nil {
			return err
		}
	}
	table.places, err = newInnerTable[aggregate.Memory](k.outer, table.number, count)
	return err
}

// remove takes a table away, if there is one. Programs that are at it keep its
// memory until they are through.
func (k *keyTables) remove(table *keyTable) {
	if table == nil {
		return
	}
	k.tables = slices.DeleteFunc(k.tables, func(t *keyTable) bool { return t == table })
	_ = k.empty(table)
	k.free = append(k.free, table.number)
}

// empty gives up what a table consists of.
func (k *keyTables) empty(table *keyTable) error {
	k.objects.drop(table.number, &table.objects)
	return errors.Join(table.places.remove(k.outer, table.number), table.texts.remove(k.texts, table.number))
}

func (k *keyTables) close() error {
	var errs []error
	for _, table := range k.tables {
		errs = append(errs, k.empty(table))
	}
	k.tables, k.free = nil, nil
	return errors.Join(errs...)
}

// reset empties the extremes of an interval in all tables.
func (k *keyTables) reset(interval uint32) {
	for _, table := range k.tables {
		aggregate.Table(table.places.shared.Elements).Each(func(_ int, _ uint64, sums *aggregate.Memory) { sums.Reset(interval) })
	}
}
