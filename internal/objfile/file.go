// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/attune-hpc/attune/internal/regular"
)

// File is an open ELF file. Its methods may be called from any goroutine
// until Close.
type File struct {
	symbols
	failure

	file      *os.File
	key       fileKey
	debugDirs debugDirs
	answers   answers
	outline   keptTable[Outline]
	frames    keptTable[Frames]
	addresses keptTable[Addresses]
	kept      sync.Map // what others make of it, see [Kept], by type
	checksums checksums
	// users counts Opens that share this File through a Cache, and the Cache.
	users atomic.Int32
}

// Open opens an ELF file, with an error that wraps [ErrNotELF],
// [ErrUnsupported], [ErrCorrupt] or what the system says. What is not a
// regular file is not opened.
func Open(path string) (*File, error) {
	file, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	return OpenFile(file)
}

// OpenFile makes a File of an open file, which it owns from now on, also when
// it returns an error.
func OpenFile(file *os.File) (*File, error) {
	f, err := newFile(file)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", file.Name(), err), file.Close())
	}
	return f, nil
}

func newFile(file *os.File) (*File, error) {
	key, err := keyOf(file)
	if err != nil {
		return nil, err
	}
	f := &File{file: file, key: key, debugDirs: systemDebugDirs()}
	f.users.Store(1)
	if f.layout, err = readLayout(nameOf(file), reader{at: file, size: uint64(key.size)}); err != nil {
		return nil, err
	}
	if f.dynamic, err = readDynamic(f.reader, f.headers); err != nil {
		return nil, err
	}
	return f, nil
}

// nameOf is the path of an open file. One that was opened through another
// process's directory in /proc has a path of its own as well.
func nameOf(file *os.File) string {
	if strings.HasPrefix(file.Name(), "/proc/") {
		if path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", file.Fd())); err == nil {
			return strings.TrimSuffix(path, " (deleted)")
		}
	}
	return file.Name()
}

// openRegular opens a regular file for reading. What is none is no ELF file.
func openRegular(path string) (*os.File, error) {
	file, err := regular.Open(path)
	if _, is := errors.AsType[*regular.KindError](err); is {
		return nil, fmt.Errorf("%s: %w: not a regular file", path, ErrNotELF)
	}
	return file, err
}

// Name is the path of the file.
func (f *File) Name() string { return f.name }

// Close gives the file back. Every Open needs one Close.
func (f *File) Close() error {
	if f.users.Add(-1) > 0 {
		return nil
	}
	return f.file.Close()
}

// Kept returns what read makes of the whole file, the same for all who ask for a T at the
// time: processes share the files that a Cache has open. They must not modify it.
func Kept[T any](f *File, read func() (*T, error)) (*T, error) {
	kept, _ := f.kept.LoadOrStore((*T)(nil), new(keptTable[T]))
	return kept.(*keptTable[T]).get(read) //nolint:forcetypeassert // what the key says
}
