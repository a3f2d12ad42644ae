// SPDX-License-Identifier: Apache-2.0

package setting

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/proc"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/regular"
)

// Layout of glibc's FILE on 64-bit machines, which programs are compiled
// against (libio/bits/types/struct_FILE.h), and of its lock behind it.
const (
	fileFlags      = 0
	fileWriteBase  = 32
	fileWritePtr   = 40
	fileBufferBase = 56
	fileBufferEnd  = 64
	fileChain      = 104
	fileNumber     = 112
	fileFlags2     = 116
	fileLock       = 136
	fileWide       = 192 // above 0: for wide characters
	fileVtable     = 216
	fileBytes      = 224
	lockDepth      = 4
)

// Flags of a FILE (libio/libio.h).
const (
	fileMagic      = 0xfbad0000
	fileMagicMask  = 0xffff0000
	flagUserBuffer = 0x1 // the buffer is not freed
	flagUnbuffered = 0x2
	flagNoReads    = 0x4
	flagNoWrites   = 0x8
	flagLineBuffer = 0x200
	flagUserLock   = 0x8000 // the program locks it itself
	flagNeedLock   = 0x80   // of fileFlags2
)

// maxStreams bounds the list of a program's streams.
const maxStreams = 4096

// bufferMode is the mode of setvbuf(3), by glibc's numbers.
type bufferMode int64

const (
	fullBuffer bufferMode = iota
	lineBuffer
	noBuffer
)

// bufferModes are their names.
var bufferModes = []string{"full", "line", "none"}

func (m bufferMode) String() string { return bufferModes[m] }

// streamState is what a FILE of a process holds.
type streamState struct {
	address            uint64
	flags, flags2      uint32
	fd                 int
	pending, buffer    uint64 // bytes that are not written yet, and where
	writePtr           uint64
	size               uint64 // of the buffer, bytes
	vtable, next, lock uint64
	wide               bool
}

func (s streamState) mode() bufferMode {
	switch {
	case s.flags&flagUnbuffered != 0:
		return noBuffer
	case s.flags&flagLineBuffer != 0:
		return lineBuffer
	}
	return fullBuffer
}

func (s streamState) buffering() buffering {
	return buffering{Mode: s.mode(), Base: s.buffer, Size: s.size, Flags: s.flags}
}

// errNoStream says that a process has no stream at an address.
var errNoStream = errors.New("there is no such stream any more")

// readStream reads the FILE at an address.
func readStream(process access.Process, address uint64) (s streamState, err error) {
	content := make([]byte, fileBytes)
	if err := proc.Read(process, address, content); err != nil {
		return s, err
	}
	word := func(at int) uint64 { return binary.LittleEndian.Uint64(content[at:]) }
	half := func(at int) uint32 { return binary.LittleEndian.Uint32(content[at:]) }
	if half(fileFlags)&fileMagicMask != fileMagic {
		return s, fmt.Errorf("%#x: %w", address, errNoStream)
	}
	s = streamState{
		address: address, flags: half(fileFlags), flags2: half(fileFlags2), fd: int(int32(half(fileNumber))),
		buffer: word(fileBufferBase), size: word(fileBufferEnd) - word(fileBufferBase), writePtr: word(fileWritePtr),
		vtable: word(fileVtable), next: word(fileChain), lock: word(fileLock), wide: int32(half(fileWide)) > 0,
	}
	if base := word(fileWriteBase); s.writePtr > base {
		s.pending = s.writePtr - base
	}
	return s, nil
}

// streams reads all streams of a process, from glibc's own list. While the program opens and
// closes some it may lead to one that is none any more, and past others.
func streams(process access.Process, libc objfile.Image) (all []streamState, err error) {
	list, err := libc.Symbol("_IO_list_all", objfile.Variable)
	if err != nil {
		return nil, err
	}
	head := make([]byte, 8)
	if err := proc.Read(process, libc.Address(list.Value), head); err != nil {
		return nil, err
	}
	for address := binary.LittleEndian.Uint64(head); address != 0; {
		s, err := readStream(process, address)
		if err != nil {
			return nil, err
		}
		if all = append(all, s); len(all) > maxStreams {
			return nil, fmt.Errorf("more than %d streams", maxStreams)
		}
		address = s.next
	}
	return all, nil
}

// streamTries is how often the list of streams is read for one that is not there.
const streamTries = 20

// streamOf finds the stream that writes to a descriptor.
func streamOf(process access.Process, libc objfile.Image, fd int) (found streamState, err error) {
	for range streamTries {
		all, listErr := streams(process, libc)
		if listErr != nil {
			err = listErr
			continue
		}
		writes := slices.DeleteFunc(all, func(s streamState) bool { return s.fd != fd || s.flags&flagNoWrites != 0 })
		switch len(writes) {
		case 0:
			err = fmt.Errorf("the program has no stdio stream that writes to descriptor %d", fd)
		case 1:
			return writes[0], nil
		default:
			return found, fmt.Errorf("%d stdio streams write to descriptor %d", len(writes), fd)
		}
	}
	return found, err
}

// sink is the file behind a stream.
type sink struct {
	mode          uint32 // of stat(2)
	device, inode uint64
	null          bool   // /dev/null
	path          string // below /proc
}

// sinkOf looks at the file behind a descriptor, and refuses one that a write
// out of turn could hold up, fail on, or show to somebody who watches. A server of files is
// not asked.
func sinkOf(pid, fd int) (sink, error) {
	s := sink{path: descriptorPath(pid, fd)}
	st, err := procid.FileOf(s.path)
	if err != nil {
		return s, fmt.Errorf("descriptor %d: %w", fd, procid.GoneError(err))
	}
	s.mode, s.device, s.inode = st.Mode&unix.S_IFMT, st.Dev, st.Ino
	const memoryDevices, null = 1, 3
	s.null = s.mode == unix.S_IFCHR && unix.Major(st.Rdev) == memoryDevices && unix.Minor(st.Rdev) == null
	if s.mode != unix.S_IFREG && s.mode != unix.S_IFIFO && !s.null {
		return s, fmt.Errorf("descriptor %d is neither a file nor a pipe", fd)
	}
	d, err := procid.ReadDescriptor(pid, fd)
	if err == nil && d.Flags&unix.O_NONBLOCK != 0 {
		err = fmt.Errorf("descriptor %d does not block (O_NONBLOCK): writing to it can fail at any time", fd)
	}
	return s, err
}

func descriptorPath(pid, fd int) string { return fmt.Sprintf("/proc/%d/fd/%d", pid, fd) }

// room says whether the reader of a pipe keeps up, so that a number of bytes can
// be written without waiting for long. A pipe that is full makes the program
// wait as it is.
func (s sink) room(bytes uint64) bool {
	if s.mode != unix.S_IFIFO {
		return true
	}
	// Opening the pipe anew gives a descriptor of ours; nothing is read.
	file, err := regular.OpenKind(s.path, unix.O_WRONLY, unix.S_IFIFO)
	if err != nil {
		return true // nobody reads it any more: writing does not wait either
	}
	defer file.Close()
	size, err := unix.FcntlInt(file.Fd(), unix.F_GETPIPE_SZ, 0)
	if err != nil {
		return false
	}
	used, err := unix.IoctlGetInt(int(file.Fd()), unix.TIOCINQ)
	// Pages of a pipe may hold less than they could.
	return err == nil && (used == 0 || 2*uint64(used)+bytes <= uint64(size)/2)
}
