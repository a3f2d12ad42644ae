// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"errors"
	"fmt"
	"slices"

	"github.com/attune-hpc/attune/controller/inject/tracer"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/proc"
	"github.com/attune-hpc/attune/internal/procid"
)

// holding is code that holds, or may hold, locks that dlopen takes and that do
// not tell who holds them: the allocator's. The loader is here too, for it must
// not be entered twice.
type holding struct {
	tracer.Span
	code []byte // the bytes of the span, to tell return addresses by
}

// ground knows where in a process a thread may be made to call dlopen.
type ground struct {
	process *proc.Handle
	libc    tracer.Span // a thread in here must be in a system call
	holding []holding
	frames  frames
	loader  tracer.Span   // the loader's variables, its locks with their owners among them
	gadget  tracer.Gadget // in libc
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

// newGround maps the ground of a process, whose objects are the program's own and those
// apart ([ofProgram]).
func newGround(process *proc.Handle, own, apart []objfile.Image) (*ground, error) {
	g := &ground{process: process, frames: frames{read: process.Read}}
	for _, image := range own {
		if err := g.add(image); err != nil {
			return nil, err
		}
	}
	for _, image := range apart {
		if err := g.addApart(image); err != nil {
			return nil, err
		}
	}
	if g.libc.End == 0 || g.loader.End == 0 {
		return nil, fmt.Errorf("%w: it has no glibc", ErrUnsuited)
	}
	var err error
	if g.gadget, err = tracer.FindGadget(process, g.libc); errors.Is(err, tracer.ErrNoGadget) {
		err = fmt.Errorf("%w: %w in its libc", ErrUnsuited, err)
	}
	return g, err
}

// add maps the ground of one image.
func (g *ground) add(image objfile.Image) error {
	g.frames.add(image)
	switch {
	case image.IsLoader():
		return g.holdLoader(image)
	case image.Matches("libattune-dm*"):
		return g.hold(executable(g.process.PID(), image))
	case isLibc(image):
		return g.holdLibc(image)
	}
	return g.holdAllocator(image)
}

// addApart maps the ground of an image that is not the program's. A C library of its own
// is held whole: a thread in there is borrowed nowhere.
func (g *ground) addApart(image objfile.Image) error {
	g.frames.add(image)
	if isLibc(image) {
		return g.hold(executable(g.process.PID(), image))
	}
	return g.holdAllocator(image)
}

// executable is the part of an image that holds code.
func executable(pid int, image objfile.Image) (s tracer.Span) {
	mappings, err := objfile.Mappings(pid)
	if err != nil {
		return tracer.Span{}
	}
	for _, m := range mappings {
		if m.Exec && m.Inode == image.Inode && m.Device == image.Device && m.Start >= image.Start && m.Start < image.End {
			if s.End == 0 {
				s.Start = m.Start
			}
			s.End = m.End
		}
	}
	return s
}

// hold adds a range whose code is remembered.
func (g *ground) hold(s tracer.Span) error {
	if s.End <= s.Start {
		return nil
	}
	code := make([]byte, s.End-s.Start)
	if err := g.process.Read(s.Start, code); err != nil {
		return err
	}
	g.holding = append(g.holding, holding{s, code})
	return nil
}

func (g *ground) holdLoader(image objfile.Image) error {
	s, err := image.Symbol("_rtld_global", objfile.Variable)
	if err != nil {
		return fmt.Errorf("locks of the loader: %w", err)
	}
	at := image.Address(s.Value)
	g.loader = tracer.Span{Start: at, End: at + s.Size}
	return g.hold(executable(g.process.PID(), image))
}

func (g *ground) holdLibc(image objfile.Image) error {
	g.libc = executable(g.process.PID(), image)
	file, err := image.Open()
	if err != nil {
		return err
	}
	defer file.Close()
	var malloc tracer.Span
	for _, name := range allocators {
		if s, err := file.SymbolOf(name, objfile.Function); err == nil {
			at := image.Address(s.Value)
			if malloc.End == 0 {
				malloc = tracer.Span{Start: at, End: at}
			}
			malloc = tracer.Span{Start: min(malloc.Start, at), End: max(malloc.End, at)}
		}
	}
	if malloc.End == 0 {
		return fmt.Errorf("%w: its libc has no malloc", ErrUnsuited)
	}
	malloc = tracer.Span{Start: max(malloc.Start-allocatorBefore, g.libc.Start), End: min(malloc.End+allocatorAfter, g.libc.End)}
	return g.hold(malloc)
}

// holdAllocator holds the whole of a library that brings an allocator of its
// own. Where that is the program itself, nothing tells its code from the rest.
func (g *ground) holdAllocator(image objfile.Image) error {
	if _, ok := exported(image, "malloc"); !ok {
		return nil
	}
	own := executable(g.process.PID(), image)
	if isProgram(g.process.PID(), image) {
		return fmt.Errorf("%w: %s brings its own allocator: start it with `attune run`", ErrUnsuited, image.Name())
	}
	if _, ok := exported(image, "__tsan_init"); ok {
		return fmt.Errorf("%w: %s (ThreadSanitizer) is on the stack of every thread: start it with `attune run`", ErrUnsuited, image.Name())
	}
	g.foreign = true
	return g.hold(own)
}

// held says whether an address lies in code that may hold locks.
func (g *ground) held(address uint64) bool {
	return slices.ContainsFunc(g.holding, func(h holding) bool { return h.Has(address) })
}

// returns says whether a word of a stack is the address behind a call in code
// that may hold locks.
func (g *ground) returns(word uint64) bool {
	return slices.ContainsFunc(g.holding, func(h holding) bool {
		return h.Has(word) && afterCall(h.code[:word-h.Start])
	})
}

// isProgram says whether an image is the program itself.
func isProgram(pid int, image objfile.Image) bool {
	identity, err := procid.Of(pid)
	return err == nil && image.Inode == identity.ExeInode
}
