// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/inject/tracer"
	"github.com/attune-hpc/attune/internal/callframe"
	"github.com/attune-hpc/attune/internal/objfile"
)

// frames follows the frames of a process' threads.
type frames struct {
	read    callframe.Read
	objects []unwinding
}

// unwinding is an object whose frames can be followed.
type unwinding struct {
	tracer.Span
	index uint64 // of its call frame information
}

// add notes how the frames of an image's functions are followed. Those of one that does
// not say it are not.
func (f *frames) add(image objfile.Image) {
	file, err := image.Open()
	if err != nil {
		return
	}
	defer file.Close()
	if index, ok := file.FrameIndex(); ok {
		f.objects = append(f.objects, unwinding{tracer.Span{Start: image.Start, End: image.End}, image.Address(index)})
	}
}

// callers follows the frames of a thread up to an address of its stack, and says whether
// that could be done and each is good, given an address within its call.
func (f *frames) callers(frame callframe.Frame, end uint64, good func(call uint64) bool) bool {
	instruction := frame.PC()
	for frame.Stack() < end {
		index, ok := f.indexOf(instruction)
		if !ok {
			return false
		}
		entry, err := callframe.Find(f.read, index, instruction)
		if err == nil {
			frame, err = entry.Caller(instruction, frame, f.read)
		}
		if err != nil {
			return errors.Is(err, callframe.ErrOutermost)
		}
		instruction = frame.PC() - 1
		if !f.behindCall(frame.PC()) || !good(instruction) {
			return false
		}
	}
	return true
}

// indexOf is that of the object which an address lies in.
func (f *frames) indexOf(address uint64) (index uint64, ok bool) {
	for _, u := range f.objects {
		if u.Has(address) {
			return u.index, true
		}
	}
	return 0, false
}

// behindCall says whether a frame may go on at an address.
func (f *frames) behindCall(address uint64) bool {
	code := make([]byte, longestCall)
	return f.read(address-longestCall, code) == nil && afterCall(code)
}

// longestCall is how long a call is at most: with an addressing mode, an index and 32
// bits.
const longestCall = 7

// afterCall says whether code ends with a call instruction: E8 rel32, or
// FF /2 with its addressing modes.
func afterCall(code []byte) bool {
	n := len(code)
	if n >= 5 && code[n-5] == 0xe8 {
		return true
	}
	for _, length := range []int{2, 3, 4, 6, 7} {
		if n >= length && code[n-length] == 0xff && code[n-length+1]&0x38 == 0x10 {
			return true
		}
	}
	// At the very start of a span the call may lie before it.
	return n < longestCall
}

// frameOf is the frame of a thread that stands.
func frameOf(r *unix.PtraceRegs) callframe.Frame {
	return callframe.Frame{
		r.Rax, r.Rdx, r.Rcx, r.Rbx, r.Rsi, r.Rdi, r.Rbp, r.Rsp, r.R8, r.R9, r.R10, r.R11, r.R12, r.R13, r.R14, r.R15, r.Rip,
	}
}
