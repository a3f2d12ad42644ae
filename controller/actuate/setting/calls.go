// SPDX-License-Identifier: Apache-2.0

package setting

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/controller/inject"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/proc"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// scratch is a page of memory in a process, for what calls take by reference.
// It is mapped, not allocated, so that no allocator sees it.
type scratch struct {
	library
	process access.Process
	address uint64
	unmap   uint64 // munmap
}

const scratchBytes = 4096

// withPage does something with a page, which is there until it is done.
type withPage func(ctx context.Context, do func(scratch) error) error

// withoutPage is for calls that need none.
func withoutPage(_ context.Context, do func(scratch) error) error { return do(scratch{}) }

// pages maps a page for each thing that is done. That the page stays in the process is no
// error of what was done: a value that was set would be taken for one that was not.
func (l library) pages(r *settingRequest) withPage {
	return func(ctx context.Context, do func(scratch) error) error {
		page, err := l.mapScratch(ctx, r.Process)
		if err != nil {
			return err
		}
		err = do(page)
		if stays := page.close(ctx); stays != nil {
			r.Log().Warn("a page that was mapped for calls stays in the process", "pid", r.Process.PID(), "error", stays)
		}
		return err
	}
}

// mapScratch maps the page. The caller closes it.
func (l library) mapScratch(ctx context.Context, process access.Process) (scratch, error) {
	mmap, err := access.Resolve(process, "libc.so*", "mmap", objfile.Function)
	if err != nil {
		return scratch{}, err
	}
	munmap, err := access.Resolve(process, "libc.so*", "munmap", objfile.Function)
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
	return s.address + offset, proc.Write(s.process, s.address+offset, data)
}

// text puts a string there, with its end.
func (s scratch) text(offset uint64, text string) (uint64, error) {
	return s.write(offset, append([]byte(text), 0))
}

// read returns size bytes, at most 8, as a signed number.
func (s scratch) read(offset uint64, size int) (int64, error) {
	data := make([]byte, size)
	if err := proc.Read(s.process, s.address+offset, data); err != nil {
		return 0, err
	}
	shift := 64 - 8*size
	return int64(word64(data)<<shift) >> shift, nil
}

// errNeedsCall says that a way to change a setting is for processes with DMLib.
var errNeedsCall = fmt.Errorf("%w: that needs DMLib in the process", access.ErrRefused)

// library makes calls of a library's functions inside a process, where its
// thread could call the allocator.
type library struct {
	mailbox caller
	at      *attunev1.SafePoint
	thread  int // as the process sees its id; 0: any
	way     access.Way
}

// caller is a Mailbox, or a place that its calls are made at.
type caller interface {
	Call(ctx context.Context, call access.Call) (result uint64, where string, err error)
}

// stopped has a stopped thread of a process make calls. It belongs to one
// goroutine.
type stopped struct {
	process access.Process
	// malloc is where a thread is waited for, once it could not be told that one
	// stood where it may call the C library.
	malloc *objfile.Resolved
}

// Call makes a call where the thread could call the C library, or where it
// begins to allocate memory: then it holds none of the allocator's locks. The
// first is recognised with certainty only, which for some programs is never.
func (s *stopped) Call(ctx context.Context, call access.Call) (uint64, string, error) {
	i := access.Invocation{Function: call.Function, Place: access.Place{Thread: call.Thread, Function: s.malloc}}
	for _, argument := range call.Arguments {
		i.Arguments = append(i.Arguments, access.Unsigned(argument))
	}
	if s.malloc == nil {
		i.Patience = searchPatience
	}
	result, how, err := i.ByStop(ctx, s.process)
	if s.malloc != nil || !errors.Is(err, inject.ErrNoSafePoint) {
		return result, how.Where, err
	}
	malloc, lookErr := allocatorOf(s.process)
	if lookErr != nil {
		return 0, "", err
	}
	s.malloc = &malloc
	i.Patience, i.Place.Function = 0, s.malloc
	result, how, err = i.ByStop(ctx, s.process)
	return result, how.Where, err
}

// open says by which way calls are made in the process, if at all: by DMLib
// where it is there, else by a thread that is stopped for each.
func (r *settingRequest) open(thread int) (library, error) {
	if r.Change.GetSafePoint().GetKind() == attunev1.SafePoint_KIND_NOW {
		return library{}, fmt.Errorf("%w: %s is changed by a call, which at an arbitrary place can deadlock; use safe point \"next hook\"",
			access.ErrRefused, r.setting.Name)
	}
	l := library{at: r.Change.GetSafePoint(), thread: thread}
	if mailbox := r.Process.Mailbox(); mailbox != nil {
		l.mailbox, l.way = mailbox, access.WayMailbox
		return l, nil
	}
	if r.Change.GetSafePoint().GetKind() == attunev1.SafePoint_KIND_NEXT_HOOK {
		return library{}, errNeedsCall
	}
	l.mailbox, l.way = &stopped{process: r.Process}, access.WayStopped
	return l, nil
}

func (l library) call(ctx context.Context, function uint64, arguments ...uint64) (uint64, string, error) {
	ctx, cancel := access.SafePointContext(ctx, l.at)
	defer cancel()
	return l.mailbox.Call(ctx, access.Call{
		Function: function, Arguments: arguments, Families: l.at.GetFamilies(), Thread: l.thread,
	})
}

// allocatorOf finds the malloc that a program uses: glibc's only where there is
// no other.
func allocatorOf(process access.Process) (objfile.Resolved, error) {
	images, err := process.Images()
	if err != nil {
		return objfile.Resolved{}, err
	}
	for _, image := range images {
		if image.Matches("libc.so*") || image.Matches("ld-linux*") || image.Matches("libattune-dm*") {
			continue
		}
		if malloc, err := image.Symbol("malloc", objfile.Function); err == nil {
			return objfile.Resolved{Address: image.Address(malloc.Value), Symbol: malloc, Image: image}, nil
		}
	}
	return access.Resolve(process, "libc.so*", "malloc", objfile.Function)
}
