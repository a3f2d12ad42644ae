// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procmem"
)

// scratch is a page of memory in a process, for what calls take by reference.
// It is mapped, not allocated, so that no allocator sees it.
type scratch struct {
	library
	process Process
	address uint64
	unmap   uint64 // munmap
}

const scratchBytes = 4096

// withPage does something with a page, which is there until it is done.
type withPage func(ctx context.Context, do func(scratch) error) error

// withoutPage is for calls that need none.
func withoutPage(_ context.Context, do func(scratch) error) error { return do(scratch{}) }

// pages maps a page for each thing that is done.
func (l library) pages(process Process) withPage {
	return func(ctx context.Context, do func(scratch) error) error {
		page, err := l.mapScratch(ctx, process)
		if err != nil {
			return err
		}
		return errors.Join(do(page), page.close(ctx))
	}
}

// mapScratch maps the page. The caller closes it.
func (l library) mapScratch(ctx context.Context, process Process) (scratch, error) {
	mmap, err := resolve(process, "libc.so*", "mmap", objfile.Function)
	if err != nil {
		return scratch{}, err
	}
	munmap, err := resolve(process, "libc.so*", "munmap", objfile.Function)
	if err != nil {
		return scratch{}, err
	}
	address, _, err := l.call(ctx, mmap.Address, 0, scratchBytes,
		unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS, ^uint64(0), 0)
	if err != nil {
		return scratch{}, err
	}
	if address%scratchBytes != 0 {
		return scratch{}, fmt.Errorf("map %d bytes in process %d: out of memory", scratchBytes, process.PID())
	}
	return scratch{library: l, process: process, address: address, unmap: munmap.Address}, nil
}

// close gives the page back. A process that comes to no safe point any more
// keeps it.
func (s scratch) close(ctx context.Context) error {
	_, _, err := s.call(context.WithoutCancel(ctx), s.unmap, s.address, scratchBytes)
	return err
}

// write puts data at an offset of the page and returns its address.
func (s scratch) write(offset uint64, data []byte) (uint64, error) {
	return s.address + offset, procmem.Write(s.process.PID(), s.address+offset, data)
}

// text puts a string there, with its end.
func (s scratch) text(offset uint64, text string) (uint64, error) {
	return s.write(offset, append([]byte(text), 0))
}

// read returns size bytes, at most 8, as a signed number.
func (s scratch) read(offset uint64, size int) (int64, error) {
	data := make([]byte, size)
	if err := procmem.Read(s.process.PID(), s.address+offset, data); err != nil {
		return 0, err
	}
	shift := 64 - 8*size
	return int64(word64(data)<<shift) >> shift, nil
}

// bytesOf are the first size bytes of a number.
func bytesOf(number int64, size int) []byte {
	return binary.LittleEndian.AppendUint64(nil, uint64(number))[:size]
}
