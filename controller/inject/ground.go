// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/proc"
	"github.com/attune-hpc/attune/internal/procid"
)

// span is a range of addresses.
type span struct{ start, end uint64 }

func (s span) has(address uint64) bool { return address-s.start < s.end-s.start }

// holding is code that holds, or may hold, locks that dlopen takes and that do
// not tell who holds them: the allocator's. The loader is here too, for it must
// not be entered twice.
type holding struct {
	span
	code []byte // the bytes of the span, to tell return addresses by
}

// ground knows where in a process a thread may be made to call dlopen.
type ground struct {
	libc     span // a thread in here must be in a system call
	holding  []holding
	loader   span   // the loader's variables, its locks with their owners among them
	gadget   uint64 // a system call instruction, in libc
	restorer uint64 // where libc's signal handlers return to; 0: not found
	// returning says that the gadget is followed by a return instruction.
	returning bool
	// foreign says that there is another allocator than libc's.
	foreign bool
}

// allocators are functions that stand in the object file of libc's allocator.
var allocators = []string{
	"malloc", "free", "calloc", "realloc", "memalign", "aligned_alloc", "posix_memalign", "valloc", "pvalloc",
	"mallopt", "malloc_trim", "malloc_usable_size", "mallinfo", "malloc_info", "malloc_stats",
}

// The allocator's inner functions have no symbols in a stripped libc. They
// stand in the same object file, before and between the public ones.
const (
	allocatorBefore = 32 << 10
	allocatorAfter  = 8 << 10
)

func isLoader(image objfile.Image) bool {
	name := filepath.Base(image.Path)
	return strings.HasPrefix(name, "ld-linux") || strings.HasPrefix(name, "ld-2.") || strings.HasPrefix(name, "ld.so")
}

// newGround maps the ground of a process.
func newGround(process *proc.Handle, images []objfile.Image) (g ground, err error) {
	for _, image := range images {
		switch {
		case isLoader(image):
			err = g.holdLoader(process, image)
		case image.Matches("libattune-dm*"):
			err = g.hold(process, executable(process.PID(), image))
		case image.Matches("libc.so.6") || image.Matches("libc-*.so"):
			err = g.holdLibc(process, image)
		default:
			err = g.holdAllocator(process, image)
		}
		if err != nil {
			return g, err
		}
	}
	if g.libc.end == 0 || g.loader.end == 0 {
		return g, fmt.Errorf("%w: it has no glibc", ErrUnsuited)
	}
	err = g.findGadget(process)
	return g, err
}

// executable is the part of an image that holds code.
func executable(pid int, image objfile.Image) (s span) {
	mappings, err := objfile.Mappings(pid)
	if err != nil {
		return span{}
	}
	for _, m := range mappings {
		if m.Exec && m.Inode == image.Inode && m.Device == image.Device && m.Start >= image.Start && m.Start < image.End {
			if s.end == 0 {
				s.start = m.Start
			}
			s.end = m.End
		}
	}
	return s
}

// hold adds a range whose code is remembered.
func (g *ground) hold(process *proc.Handle, s span) error {
	if s.end <= s.start {
		return nil
	}
	code := make([]byte, s.end-s.start)
	if err := process.Read(s.start, code); err != nil {
		return err
	}
	g.holding = append(g.holding, holding{s, code})
	return nil
}

func (g *ground) holdLoader(process *proc.Handle, image objfile.Image) error {
	s, err := image.Symbol("_rtld_global", objfile.Variable)
	if err != nil {
		return fmt.Errorf("locks of the loader: %w", err)
	}
	at := image.Address(s.Value)
	g.loader = span{at, at + s.Size}
	return g.hold(process, executable(process.PID(), image))
}

func (g *ground) holdLibc(process *proc.Handle, image objfile.Image) error {
	g.libc = executable(process.PID(), image)
	file, err := image.Open()
	if err != nil {
		return err
	}
	defer file.Close()
	var malloc span
	for _, name := range allocators {
		if s, err := file.SymbolOf(name, objfile.Function); err == nil {
			at := image.Address(s.Value)
			if malloc.end == 0 {
				malloc = span{at, at}
			}
			malloc = span{min(malloc.start, at), max(malloc.end, at)}
		}
	}
	if malloc.end == 0 {
		return fmt.Errorf("%w: its libc has no malloc", ErrUnsuited)
	}
	malloc = span{max(malloc.start-allocatorBefore, g.libc.start), min(malloc.end+allocatorAfter, g.libc.end)}
	return g.hold(process, malloc)
}

// holdAllocator holds the whole of a library that brings an allocator of its
// own. Where that is the program itself, nothing tells its code from the rest.
func (g *ground) holdAllocator(process *proc.Handle, image objfile.Image) error {
	if _, ok := exported(image, "malloc"); !ok {
		return nil
	}
	own := executable(process.PID(), image)
	if isProgram(process.PID(), image) {
		return fmt.Errorf("%w: %s brings its own allocator: start it with `attune run`", ErrUnsuited, image.Name())
	}
	g.foreign = true
	return g.hold(process, own)
}

// What is looked for in libc's code: a system call, with a return behind it if
// there is one, and mov $15,%rax; syscall.
var (
	syscallCode   = []byte{0x0f, 0x05}
	returningCode = []byte{0x0f, 0x05, 0xc3}
	restorerCode  = []byte{0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05}
)

// findGadget finds a system call instruction to borrow, and the code that
// signal handlers return to.
func (g *ground) findGadget(process *proc.Handle) error {
	code := make([]byte, g.libc.end-g.libc.start)
	if err := process.Read(g.libc.start, code); err != nil {
		return err
	}
	i := bytes.Index(code, returningCode)
	g.returning = i >= 0
	if !g.returning {
		i = bytes.Index(code, syscallCode)
	}
	if i < 0 {
		return fmt.Errorf("%w: no system call instruction in its libc", ErrUnsuited)
	}
	g.gadget = g.libc.start + uint64(i)
	if i := bytes.Index(code, restorerCode); i >= 0 {
		g.restorer = g.libc.start + uint64(i)
	}
	return nil
}

// held says whether an address lies in code that may hold locks.
func (g *ground) held(address uint64) bool {
	return slices.ContainsFunc(g.holding, func(h holding) bool { return h.has(address) })
}

// returns says whether a word of a stack is the address behind a call in code
// that may hold locks.
func (g *ground) returns(word uint64) bool {
	return slices.ContainsFunc(g.holding, func(h holding) bool {
		return h.has(word) && afterCall(h.code[:word-h.start])
	})
}

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
	return n < 7
}

// isProgram says whether an image is the program itself.
func isProgram(pid int, image objfile.Image) bool {
	identity, err := procid.Of(pid)
	return err == nil && image.Inode == identity.ExeInode
}
