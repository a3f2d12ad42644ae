// SPDX-License-Identifier: Apache-2.0

package uprobe

import (
	"errors"
	"unsafe"

	"github.com/cilium/ebpf"

	"github.com/attune-hpc/attune/controller/bpf"
)

// innerTable is an array that an array of maps holds, in the memory of this process.
// The zero innerTable is none.
type innerTable[T any] struct {
	array  *ebpf.Map
	shared bpf.SharedArray[T]
}

// innerTableSpec is that of an array that may have any size.
func innerTableSpec[T any](count int) *ebpf.MapSpec {
	const mmapable, inner = 1 << 10, 1 << 12
	return &ebpf.MapSpec{
		Name: "inner_table", Type: ebpf.Array, KeySize: 4, ValueSize: uint32(unsafe.Sizeof(*new(T))),
		MaxEntries: uint32(count), Flags: mmapable | inner,
	}
}

// newInnerTable makes an array that begins with a content, and puts it into an outer one.
func newInnerTable[T any](outer *ebpf.Map, number uint32, count int, content ...T) (innerTable[T], error) {
	table, err := newLooseTable(count, content)
	if err == nil {
		err = table.put(outer, number)
	}
	return table, err
}

// newLooseTable makes an array that begins with a content, and that no outer one holds yet.
func newLooseTable[T any](count int, content []T) (table innerTable[T], err error) {
	if table.array, err = ebpf.NewMap(innerTableSpec[T](count)); err != nil {
		return table, err
	}
	if table.shared, err = bpf.MapArray[T](table.array); err != nil {
		return table, errors.Join(err, table.close())
	}
	copy(table.shared.Elements, content)
	return table, nil
}

// put puts the array into an outer one, and gives it up if that fails.
func (t *innerTable[T]) put(outer *ebpf.Map, number uint32) error {
	if err := outer.Put(number, t.array); err != nil {
		return errors.Join(err, t.close())
	}
	return nil
}

// remove takes the array out and gives it up. Programs that are at it keep its memory
// until they are through.
func (t *innerTable[T]) remove(outer *ebpf.Map, number uint32) error {
	if t.array == nil {
		return nil
	}
	// What replaces it, or the end of the outer map, drops the other hold.
	_ = outer.Delete(number)
	return t.close()
}

func (t *innerTable[T]) close() error {
	err := errors.Join(t.shared.Unmap(), t.array.Close())
	*t = innerTable[T]{}
	return err
}
