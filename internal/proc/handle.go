// SPDX-License-Identifier: Apache-2.0

// Package proc holds one image of a process: the process itself by a pidfd, and the
// memory of the program that it executed by one descriptor. Whatever is read or
// written through a [Handle] is of that image. After an exec(2) it fails, so that
// what was allowed for one program never reaches the next one, which may have been
// given root's rights.
//
// A pid alone says neither: between the moment when the owner of a process is asked
// and the moment when its memory is written, the process may execute a setuid
// program, under the same pid. Nothing else in Attune opens the memory of another
// process.
//
// The kernel copies byte strings: callers that write words which other threads read
// at the same time keep them aligned and change few enough bytes that no mixture of
// old and new is harmful, or use DMLib's mailbox, which stores whole words.
//
// Handles may be used from any goroutine.
package proc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
)

var (
	// ErrPermission means that the kernel does not let this user touch that
	// process; what keeps them out comes with it.
	ErrPermission = errors.New("process memory not accessible")
	// ErrLeftAlone means that the process must not be touched, although the kernel would let this
	// user.
	ErrLeftAlone = errors.New("is left alone")
	// ErrImageGone means that the program whose memory a handle has is not executed
	// any more: the process has ended or executes another one.
	ErrImageGone = errors.New("the program has ended or its process executes another one")
	// ErrBusy means that the threads of a process could not all be stopped in time, or
	// were not where they were to be. Trying again may help.
	ErrBusy = errors.New("code cannot be changed while its threads run")
	// ErrOwner means that the process has other rights than when it was opened.
	ErrOwner = errors.New("the process has other rights than when it was looked at")
)

// pageBytes is the size of a page, or divides it: readable memory ends at such a boundary.
const pageBytes = 4096

// Handle is one image of a process. Its owner closes it; like a file, it is closed
// with the last reference to it at the latest.
type Handle struct {
	*procid.Process
	memory *os.File // /proc/PID/mem, which is bound to the image
	image  uint64   // the image's number, 0 where it cannot be seen
	owner  uint32   // when the memory had been opened
}

// Open takes hold of the process that has this pid now, and of the program that it
// executes. Whoever is to be asked about it is asked afterwards. [procid.ErrGone] if
// there is none, [ErrPermission] if this user may not touch it.
func Open(pid int) (*Handle, error) {
	process, err := procid.Open(pid)
	if err != nil {
		return nil, err
	}
	return open(process, process.Identity())
}

// Hold is Open for the image that an identity means. [procid.ErrGone] too if its pid
// is another process's by now, [ErrImageGone] if that executes another program.
func Hold(identity procid.Identity) (*Handle, error) {
	process, err := procid.Hold(identity)
	if err != nil {
		return nil, err
	}
	return open(process, identity)
}

// Accessible says whether this user may touch the memory of a process.
func Accessible(pid int) error {
	memory, err := openMemory(pid)
	if err != nil {
		return err
	}
	return memory.Close()
}

// open opens the memory of a process that was looked at. What it executes is looked at
// once more afterwards, and is the same if the memory is of that image.
func open(process *procid.Process, want procid.Identity) (*Handle, error) {
	h := &Handle{Process: process}
	var err error
	if h.memory, err = openMemory(process.PID()); err != nil {
		return nil, errors.Join(fmt.Errorf("open memory of process %d: %w", process.PID(), err), process.Close())
	}
	if err := h.know(want); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	runtime.AddCleanup(h, func(p *procid.Process) { _ = p.Close() }, process) // a second time is fine
	return h, nil
}

// know reads whose process it is, and that it executes the program that is meant,
// where its file can be told.
func (h *Handle) know(want procid.Identity) (err error) {
	if h.owner, err = procid.Owner(h.PID()); err != nil {
		return err
	}
	now, err := procid.Of(h.PID())
	switch {
	case err != nil:
		return err
	case !h.Process.Alive():
		return fmt.Errorf("pid %d: %w", h.PID(), procid.ErrGone)
	case !now.SameImage(want), !now.SameImage(h.Identity()):
		return fmt.Errorf("pid %d: %w", h.PID(), ErrImageGone)
	}
	h.image = now.Image
	return nil
}

func openMemory(pid int) (*os.File, error) {
	memory, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	switch {
	case errors.Is(err, os.ErrPermission):
		return nil, fmt.Errorf("%w: %s", ErrPermission, procid.Barrier(pid))
	case err != nil:
		return nil, procid.GoneError(err)
	}
	return memory, nil
}

// Close lets go of both.
func (h *Handle) Close() error { return errors.Join(h.memory.Close(), h.Process.Close()) }

// Hold implements [Holder].
func (h *Handle) Hold() (*Handle, error) { return h, nil }

// Check says whether the process executes the program still, with the rights that it
// had. It holds for as long as the process cannot execute another one: to be asked
// while a thread is stopped that is to do something.
func (h *Handle) Check() error {
	owner, err := procid.Owner(h.PID())
	switch {
	case err != nil:
		return err
	case owner != h.owner:
		return fmt.Errorf("pid %d: %w", h.PID(), ErrOwner)
	}
	return h.Gone()
}

// Alive says whether the process still executes this program.
func (h *Handle) Alive() bool { return h.Gone() == nil }

// Gone is [procid.ErrGone] when the process has ended and [ErrImageGone] when it
// executes another program; else nil.
func (h *Handle) Gone() error {
	if !h.Process.Alive() {
		return fmt.Errorf("pid %d: %w", h.PID(), procid.ErrGone)
	}
	// Nothing is mapped at 0, or it may be read: only memory that is gone has no
	// bytes there and no error. A process that shares it, or somebody who is at a file
	// of /proc, keeps it for longer than it is executed.
	if _, err := h.memory.ReadAt(make([]byte, 1), 0); errors.Is(err, io.EOF) {
		return fmt.Errorf("pid %d: %w", h.PID(), ErrImageGone)
	}
	return nil
}

// Current is Gone, and compares the image as well, which takes longer than threads can be
// made to stand for: its memory is there as long as another process shares it.
func (h *Handle) Current() error {
	if err := h.Gone(); err != nil {
		return err
	}
	if h.replaced() {
		return fmt.Errorf("pid %d: %w", h.PID(), ErrImageGone)
	}
	return nil
}

// replaced says whether the process executes another image, as far as the kernel
// tells: it puts each at other addresses, unless it was asked for the same ones. No
// memory of the process is read for this; it might never answer.
func (h *Handle) replaced() bool {
	now, err := procid.ImageOf(h.PID())
	return err == nil && now != h.image && now != 0 && h.image != 0
}

// Read fills buf from address on. A partial read is an error.
func (h *Handle) Read(address uint64, buf []byte) error {
	_, err := h.memory.ReadAt(buf, int64(address))
	return h.problem("read", address, len(buf), err)
}

// ReadWord reads the 8 bytes at address as a number.
func (h *Handle) ReadWord(address uint64) (uint64, error) {
	word := make([]byte, 8)
	err := h.Read(address, word)
	return binary.LittleEndian.Uint64(word), err
}

// ReadSome fills buf up to where the process itself can read nothing, as beyond the end
// of a stack, and returns how many bytes. The descriptor of the memory would read the
// guard of a stack too, and go on to the next one. What process_vm_readv(2) has read by
// the pid is of this image if that is still there afterwards.
func (h *Handle) ReadSome(address uint64, buf []byte) int {
	if len(buf) == 0 {
		return 0
	}
	var pages []unix.RemoteIovec // the kernel stops between two of them
	for done := 0; done < len(buf); {
		start := address + uint64(done)
		n := min(len(buf)-done, int(pageBytes-start%pageBytes))
		pages = append(pages, unix.RemoteIovec{Base: uintptr(start), Len: n})
		done += n
	}
	n, err := unix.ProcessVMReadv(h.PID(), []unix.Iovec{{Base: &buf[0], Len: uint64(len(buf))}}, pages, 0)
	if err != nil || h.Gone() != nil {
		return 0
	}
	return n
}

// Write stores buf at address, also where the process itself may only read
// (relocated data, code). A partial write is an error.
func (h *Handle) Write(address uint64, buf []byte) error {
	_, err := h.memory.WriteAt(buf, int64(address))
	return h.problem("write", address, len(buf), err)
}

func (h *Handle) problem(what string, address uint64, size int, err error) error {
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		err = ErrImageGone
	case errors.Is(err, unix.EIO): // nothing is mapped there
		err = unix.EFAULT
	}
	if err != nil {
		return fmt.Errorf("%s %d bytes at %#x of process %d: %w", what, size, address, h.PID(), err)
	}
	return nil
}

// Holder is what has a handle, or can open one.
type Holder interface {
	// Hold returns the handle, which stays the holder's.
	Hold() (*Handle, error)
}

// Change is code of a process, or other memory, that is to be written over what stands
// there. From and To are equally long.
type Change struct {
	Address  uint64
	From, To []byte
}

// Read is [Handle.Read] for whoever has one.
func Read(of Holder, address uint64, buf []byte) error {
	h, err := of.Hold()
	if err != nil {
		return err
	}
	return h.Read(address, buf)
}

// ReadWord is [Handle.ReadWord] for whoever has one.
func ReadWord(of Holder, address uint64) (uint64, error) {
	h, err := of.Hold()
	if err != nil {
		return 0, err
	}
	return h.ReadWord(address)
}

// Write is [Handle.Write] for whoever has one.
func Write(of Holder, address uint64, buf []byte) error {
	h, err := of.Hold()
	if err != nil {
		return err
	}
	return h.Write(address, buf)
}

// Keeper opens a handle when it is first needed, and keeps it. The zero value is
// ready; it may be used from any goroutine.
type Keeper struct {
	mu     sync.Mutex // guards what follows
	handle *Handle
	closed bool
}

// Hold returns the handle on the image that an identity means, the same each time. A
// new one is kept if ask, called once it is open, has nothing against it; nil: nobody
// is asked.
func (k *Keeper) Hold(identity procid.Identity, ask func(pid int) error) (*Handle, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.handle != nil {
		return k.handle, nil
	}
	if k.closed {
		return nil, os.ErrClosed
	}
	handle, err := Hold(identity)
	if err != nil {
		return nil, err
	}
	if ask != nil {
		if err := ask(identity.PID); err != nil {
			return nil, errors.Join(err, handle.Close())
		}
	}
	k.handle = handle
	return handle, nil
}

// Close closes the handle, if there is one.
func (k *Keeper) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
	if k.handle == nil {
		return nil
	}
	err := k.handle.Close()
	k.handle = nil
	return err
}
