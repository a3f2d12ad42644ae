// SPDX-License-Identifier: Apache-2.0

package threadlocal

import (
	"fmt"

	"github.com/attune-hpc/attune/internal/objfile"
)

// modules is glibc's list of the objects with thread-local storage, by their numbers. An
// object that is unloaded gives its number to one that is loaded later, and a thread that
// has used the first has its block in the vector still: what is there is the second's only
// if the thread's vector is of the generation in which that was loaded, or of a later one.
type modules struct {
	list uint64 // where the address of the list's first part is

	length, next, slots uint64 // in a part of the list
	slot                uint64 // bytes of one
	generation, object  uint64 // in a slot
	counter             uint64 // in the first entry of a vector: its generation
}

// findModules reads where the list is, and glibc's descriptions of it.
func (b *Block) findModules(images []objfile.Image) error {
	loader, err := objfile.ResolveIn(images, "ld*.so*", "_rtld_global", objfile.Variable)
	if err != nil {
		return err
	}
	m := &b.modules
	err = b.readFields(images,
		field{"_thread_db_rtld_global__dl_tls_dtv_slotinfo_list", &m.list, nil},
		field{"_thread_db_dtv_slotinfo_list_len", &m.length, nil},
		field{"_thread_db_dtv_slotinfo_list_next", &m.next, nil},
		field{"_thread_db_dtv_slotinfo_list_slotinfo", &m.slots, &m.slot},
		field{"_thread_db_dtv_slotinfo_gen", &m.generation, nil},
		field{"_thread_db_dtv_slotinfo_map", &m.object, nil},
		field{"_thread_db_dtv_t_counter", &m.counter, nil},
	)
	m.list += loader.Address
	return err
}

// current returns [ErrNoCopy] if a thread's vector is older than the object.
func (b *Block) current(vector uint64) error {
	slot, err := b.slotOf()
	if err != nil {
		return err
	}
	object, err := b.process.ReadWord(slot + b.modules.object)
	if err != nil {
		return err
	}
	if object != b.object {
		return fmt.Errorf("%w: the object has been unloaded", ErrUnsupported)
	}
	loaded, err := b.process.ReadWord(slot + b.modules.generation)
	if err != nil {
		return err
	}
	generation, err := b.process.ReadWord(vector + b.modules.counter)
	if err == nil && generation < loaded {
		err = ErrNoCopy
	}
	return err
}

// slotOf finds the object's slot in the list.
func (b *Block) slotOf() (uint64, error) {
	part, err := b.process.ReadWord(b.modules.list)
	for first := uint64(0); err == nil && part != 0 && first <= maxModules; {
		var length uint64
		if length, err = b.process.ReadWord(part + b.modules.length); err != nil {
			break
		}
		if b.module-first < length {
			return part + b.modules.slots + (b.module-first)*b.modules.slot, nil
		}
		first += max(length, 1) // a spoiled list has an end, too
		part, err = b.process.ReadWord(part + b.modules.next)
	}
	if err == nil {
		err = fmt.Errorf("%w: the object is not in the list of those with some", ErrUnsupported)
	}
	return 0, err
}
