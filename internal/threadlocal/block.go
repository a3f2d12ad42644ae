// SPDX-License-Identifier: Apache-2.0

package threadlocal

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/attune-hpc/attune/internal/loaderlist"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/proc"
)

// Errors of looking for a variable.
var (
	// ErrUnsupported says that the process has no glibc that tells its layout.
	ErrUnsupported = errors.New("thread-local variables of the process cannot be found")
	// ErrNoCopy says that the thread has not used the object's variables yet:
	// its copy will be made, with the initial value, when it does.
	ErrNoCopy = errors.New("the thread has no copy of the variable yet")
)

// Block is the thread-local storage of one object of a process.
type Block struct {
	process *proc.Handle
	object  uint64 // the loader's entry of it
	module  uint64
	static  uint64 // how far below a thread's descriptor it is; 0: in the vector
	modules modules
	layout  layout
}

// layout is what glibc tells of itself; offsets in bytes.
type layout struct {
	tid, vector, module, static uint64
	entry                       uint64 // size of one of the vector
}

const (
	// unallocated is a vector's entry of an object that the thread did not use.
	unallocated = ^uint64(0)
	// maxModules bounds a vector.
	maxModules = 1 << 20
	// notStatic is where an object is said to be that must be in the vector.
	notStatic = ^uint64(0)
)

// Open finds the storage of an object. images are those of the process.
func Open(process *proc.Handle, images []objfile.Image, object objfile.Image) (*Block, error) {
	b := &Block{process: process}
	if err := b.readLayout(images); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	var err error
	if b.object, err = b.loaded(images, object); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	if b.module, err = b.process.ReadWord(b.object + b.layout.module); err != nil {
		return nil, err
	}
	if b.module == 0 || b.module > maxModules {
		return nil, fmt.Errorf("%w: %s has none, or is being loaded", ErrUnsupported, object.Path)
	}
	if b.static, err = b.process.ReadWord(b.object + b.layout.static); err != nil {
		return nil, err
	}
	if b.static != 0 && b.static != notStatic {
		return b, nil
	}
	b.static = 0
	if err := b.findModules(images); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	return b, nil
}

// Address is where the thread's copy of the variable at an offset of the block
// lies (the value of its symbol). [ErrNoCopy], or [procid.ErrGone] if there is
// no such thread.
func (b *Block) Address(tid int, offset uint64) (uint64, error) {
	thread, err := b.descriptor(tid)
	if err != nil {
		return 0, err
	}
	if b.static != 0 {
		return thread - b.static + offset, nil
	}
	vector, err := b.process.ReadWord(thread + b.layout.vector)
	if err != nil {
		return 0, err
	}
	length, err := b.process.ReadWord(vector - b.layout.entry) // dtv[-1].counter
	if err != nil {
		return 0, err
	}
	if b.module > length {
		return 0, ErrNoCopy
	}
	if err := b.current(vector); err != nil {
		return 0, err
	}
	block, err := b.process.ReadWord(vector + b.module*b.layout.entry)
	if err == nil && (block == unallocated || block == 0) {
		err = ErrNoCopy
	}
	return block + offset, err
}

// field is one of glibc's descriptions: where a value lies in a structure, or how large it is.
type field struct {
	name   string
	offset *uint64
	bytes  *uint64
}

// readLayout reads glibc's descriptions.
func (b *Block) readLayout(images []objfile.Image) error {
	err := b.readFields(images,
		field{"_thread_db_pthread_tid", &b.layout.tid, nil},
		field{"_thread_db_pthread_dtvp", &b.layout.vector, nil},
		field{"_thread_db_link_map_l_tls_modid", &b.layout.module, nil},
		field{"_thread_db_link_map_l_tls_offset", &b.layout.static, nil},
		field{"_thread_db_dtv_dtv", nil, &b.layout.entry},
	)
	if err == nil && b.layout.entry == 0 {
		err = errors.New("its vectors have entries of no size")
	}
	return err
}

// readFields reads descriptions: size in bits, number, offset.
func (b *Block) readFields(images []objfile.Image, fields ...field) error {
	for _, f := range fields {
		description, err := b.describe(images, f.name)
		if err != nil {
			return err
		}
		if f.offset != nil {
			*f.offset = uint64(description[2])
		}
		if f.bytes != nil {
			*f.bytes = uint64(description[0] / 8)
		}
	}
	return nil
}

// describe reads one of libc's descriptions; before glibc 2.34 libpthread has
// them.
func (b *Block) describe(images []objfile.Image, name string) (description [3]uint32, err error) {
	for _, object := range []string{"libc.so.6", "libpthread.so.0", "libpthread-*.so"} {
		var found objfile.Resolved
		if found, err = objfile.ResolveIn(images, object, name, objfile.Variable); err != nil {
			continue
		}
		content := make([]byte, 12)
		if err := b.process.Read(found.Address, content); err != nil {
			return description, err
		}
		for i := range description {
			description[i] = binary.LittleEndian.Uint32(content[4*i:])
		}
		return description, nil
	}
	return description, err
}

// loaded finds the loader's entry of an object.
func (b *Block) loaded(images []objfile.Image, object objfile.Image) (uint64, error) {
	list, err := loaderlist.Read(images, b.process.Read)
	for _, entry := range list {
		if entry.Is(object) {
			return entry.Address, nil
		}
	}
	return 0, errors.Join(fmt.Errorf("the loader does not list %s", object.Path), err)
}
