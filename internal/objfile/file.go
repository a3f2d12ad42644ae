// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// File is an open ELF file. Its methods may be called from any goroutine
// until Close.
type File struct {
	reader
	headers *headers
	dynamic dynamic
	file    *os.File // nil for one within another file
	name    string   // for people, and to find what lies beside it
	key     fileKey
	// debugDirs are those of the Cache that it was opened through.
	debugDirs DebugDirs
	answers   answers
	tables    keptTables
	failures  failures
	checksums checksums
	// users counts Opens that share this File through a Cache, and the Cache.
	users atomic.Int32
}

// fileKey tells files and versions of a file apart.
type fileKey struct {
	device, inode    uint64
	size             int64
	modified, change unix.Timespec
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
	f := &File{reader: reader{at: file, size: uint64(key.size)}, file: file, name: nameOf(file), key: key}
	f.users.Store(1)
	if f.headers, err = readHeaders(f.reader); err != nil {
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

func keyOf(file *os.File) (fileKey, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &st); err != nil {
		return fileKey{}, fmt.Errorf("stat: %w", err)
	}
	return fileKey{uint64(st.Dev), st.Ino, st.Size, st.Mtim, st.Ctim}, nil
}

// openRegular opens a regular file for reading. What it is is checked before
// it is opened, since opening a device or a FIFO has effects.
func openRegular(path string) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, fmt.Errorf("%s: %w: not a regular file", path, ErrNotELF)
	}
	again, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(again), path), nil
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

// DebugDirs are where the Cache that the file was opened through looks for
// separate debug files.
func (f *File) DebugDirs() DebugDirs { return f.debugDirs }

// Machine is the processor architecture of the file.
func (f *File) Machine() elf.Machine { return elf.Machine(f.headers.file.Machine) }

// Type is ET_EXEC for a program at fixed addresses, ET_DYN for a
// position-independent program or a library.
func (f *File) Type() elf.Type { return elf.Type(f.headers.file.Type) }

// BindNow says whether the loader binds all of the file's imports at load
// time. Otherwise slots of R_*_JUMP_SLOT are bound by the first call.
func (f *File) BindNow() bool { return f.dynamic.bindNow() }

// Interpreter is the dynamic loader that the file asks for (PT_INTERP), ""
// for static programs and most libraries.
func (f *File) Interpreter() (string, error) {
	p, ok := f.headers.program(elf.PT_INTERP)
	if !ok {
		return "", nil
	}
	data, err := f.bytes("interpreter", p.Off, p.Filesz, maxNameBytes)
	if err != nil {
		return "", err
	}
	if end := bytes.IndexByte(data, 0); end >= 0 {
		return string(data[:end]), nil
	}
	return "", fmt.Errorf("%w: interpreter without end", ErrCorrupt)
}

// SOName is the name under which the object is linked (DT_SONAME), or "".
func (f *File) SOName() string {
	name, ok := f.dynamic.values[elf.DT_SONAME]
	if !ok {
		return ""
	}
	strings := f.dynamic.strings(f.headers)
	if name >= strings.size {
		return ""
	}
	// The table of a large library has megabytes.
	content, err := f.bytes("name of the object", strings.offset+name, min(strings.size-name, maxNameBytes), maxNameBytes)
	if err != nil {
		return ""
	}
	return string(text(content, 0))
}

// load reads a table whole.
func (f *File) load(what string, t table) ([]byte, error) {
	return f.bytes(what, t.offset, t.size, maxTableBytes)
}

// BuildID is the GNU build id in hexadecimal, "" if the file has none.
func (f *File) BuildID() string {
	for _, p := range f.headers.programs {
		if elf.ProgType(p.Type) != elf.PT_NOTE {
			continue
		}
		data, err := f.bytes("notes", p.Off, p.Filesz, maxNoteBytes)
		if err != nil {
			continue
		}
		if id := buildID(data, p.Align); id != "" {
			return id
		}
	}
	return ""
}

// buildID looks through notes: name size, content size, type, name, content,
// the latter two padded to 4 bytes, or 8 in segments aligned so.
func buildID(notes []byte, align uint64) string {
	const head, gnuBuildID = 12, 3
	if align != 8 {
		align = 4
	}
	pad := func(n uint32) uint64 { return (uint64(n) + align - 1) &^ (align - 1) }
	for len(notes) >= head {
		name, content := binary.LittleEndian.Uint32(notes), binary.LittleEndian.Uint32(notes[4:])
		kind := binary.LittleEndian.Uint32(notes[8:])
		start := (head + uint64(name) + align - 1) &^ (align - 1)
		end := start + uint64(content)
		if end > uint64(len(notes)) {
			return ""
		}
		if kind == gnuBuildID && string(notes[head:head+min(uint64(name), uint64(len(notes)-head))]) == "GNU\x00" {
			return hex.EncodeToString(notes[start:end])
		}
		notes = notes[min(start+pad(content), uint64(len(notes))):]
	}
	return ""
}
