// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"debug/elf"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/dmlib"
	"github.com/attune-hpc/attune/dmlib/abi"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/proc"
	"github.com/attune-hpc/attune/internal/procid"
)

// plan is all that can be known before anything is stopped.
type plan struct {
	options Options
	process *proc.Handle
	pid     int
	status  procid.Status
	ground  ground
	calls   calls
	library library
	slots   []Slot // Hook is an offset from DMLib's load address
	reals   []realFunction
	owner   shm.Owner
	orphan  bool              // the controller that the process is under is dead
	image   []byte            // what the thread executes
	encoded []byte            // the attach request
	area    []byte            // for vector registers
	late    map[int]bool      // threads that this OS thread may still hold
	slow    map[int]bool      // threads that did not stop in time: the others come first
	passed  map[int]bool      // threads that were passed over for one with a lifeline
	looks   int               // how often a thread was looked at, stopped for that or not
	seen    map[int]time.Time // when a thread was last stopped for a look
	stacks  stacks
	until   time.Time // when the search ends
	lender  *lender   // of priority, while a thread is stopped
	filters map[int]error
	// code is what is called instead of loading DMLib, value what it returned.
	code  []byte
	value uint64
	// room is where the mapping is asked for; 0: wherever the kernel likes. It
	// likes to be next to the libraries, where code that maps memory at a given
	// address (for a landing) may want just that place.
	room uint64
	// thread is the only one that will do; 0: any. anywhere says that the code
	// takes no lock and calls nothing, so that it may interrupt anything.
	thread   int
	anywhere bool
	// also is what else is asked of a thread (ExecuteOptions.Suits); may be nil.
	also func(call int64, argument uint64) bool
	// at are the addresses of which a thread does it at the first that it comes to,
	// or at the exit of the function there; none: wherever it suits.
	at   []uint64
	exit bool
	// visit is what is done instead of one call (Meet); may be nil.
	visit func(*Visit) (done bool, err error)
	// seizeOptions are those of ptrace for threads that are taken hold of.
	seizeOptions uintptr
	// breakpoints are those that were made; they are closed with the plan.
	breakpoints []breakpoint
}

// calls are the addresses of functions in the process. create is 0 where no
// thread is to be started, message where there is no dlerror.
type calls struct {
	open, sym, message                        uint64
	create, attributes, setDetached, setStack uint64
	unmap                                     uint64
	oneThread                                 uint64 // where the C library says that there is one; 0: nowhere
	mode                                      uint32 // of open, beside RTLD_NOW
}

// maxXstate is more than any processor's vector registers take, bytes.
const maxXstate = 16 << 10

// modeInternal is what libc's internal dlopen wants to be told.
const modeInternal = 0x80000000

// newPlan makes the plan of loading DMLib. The caller closes it.
func newPlan(process *proc.Handle, s procid.Status, o Options) (*plan, error) {
	p, err := emptyPlan(process, s, o)
	if err != nil {
		return nil, err
	}
	if err := p.find(); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

// find looks for everything in the process.
func (p *plan) find() error {
	pid := p.pid
	images, err := p.options.Cache.Images(pid)
	if err != nil {
		return err
	}
	if p.owner, err = shm.ThisProcess(); err != nil {
		return err
	}
	if p.orphan, err = orphaned(p.process); err != nil {
		return err
	}
	if p.calls, err = findCalls(pid, images); err != nil {
		return err
	}
	if p.ground, err = newGround(p.process, images); err != nil {
		return err
	}
	if p.library, err = findLibrary(p.process, images, p.status, p.options.Library); err != nil {
		return err
	}
	p.reals = findReals(pid, images, p.library.hooks)
	p.slots = findSlots(images, p.library.hooks, p.reals)
	p.encoded = p.request()
	return nil
}

// emptyPlan has what every call needs. The caller closes it.
func emptyPlan(process *proc.Handle, s procid.Status, o Options) (*plan, error) {
	image, err := dmlib.Entry()
	if err != nil {
		return nil, err
	}
	return &plan{
		options: o, process: process, pid: process.PID(), status: s, image: image,
		area: make([]byte, maxXstate), late: make(map[int]bool), slow: make(map[int]bool),
		passed: make(map[int]bool), seen: make(map[int]time.Time), filters: make(map[int]error),
	}, nil
}

func (p *plan) close() (err error) {
	for _, b := range p.breakpoints {
		err = errors.Join(err, b.close())
	}
	return err
}

// Names of the C library's parts: one since glibc 2.34, several before.
var libcParts = []string{"libc.so.6", "libc-*.so", "libdl.so.2", "libdl-*.so", "libpthread.so.0", "libpthread-*.so"}

func inLibc(images []objfile.Image, name string) uint64 {
	for _, part := range libcParts {
		if found, err := objfile.ResolveIn(images, part, name, objfile.Function); err == nil {
			return found.Address
		}
	}
	return 0
}

// findCalls finds dlopen and its companions, or libc's internal ones where
// there is no libdl, and what starts a thread.
func findCalls(pid int, images []objfile.Image) (c calls, err error) {
	libc := func(name string) uint64 { return inLibc(images, name) }
	c = calls{open: libc("dlopen"), sym: libc("dlsym"), message: libc("dlerror")}
	if c.open == 0 || c.sym == 0 {
		c = calls{open: libc("__libc_dlopen_mode"), sym: libc("__libc_dlsym"), mode: modeInternal}
	}
	if c.open == 0 || c.sym == 0 {
		return c, fmt.Errorf("%w: no dlopen of a C library was found in it; where the library's file was replaced since it started, only root can read it", ErrUnsuited)
	}
	c.unmap = libc("munmap")
	c.attributes, c.setDetached, c.setStack = libc("pthread_attr_init"), libc("pthread_attr_setdetachstate"), libc("pthread_attr_setstacksize")
	if c.unmap != 0 && c.attributes != 0 && c.setDetached != 0 && c.setStack != 0 {
		var may bool
		if may, c.oneThread = mayHaveThreads(pid, images); may {
			c.create = libc("pthread_create")
		}
	}
	return c, nil
}

// mayHaveThreads says whether a thread of ours changes nothing for the program:
// it has or had others, so that its C library takes its locks anyway, and
// nobody keeps count of them. oneThread is where the C library says that there are
// no others, which it has not done yet in a program that is starting: see
// [plan.single].
func mayHaveThreads(pid int, images []objfile.Image) (may bool, oneThread uint64) {
	for _, image := range images {
		if _, ok := exported(image, "pthread_create"); ok && !isLibc(image) {
			return false, 0 // a sanitizer or a tool, which must know of every thread
		}
	}
	flag, err := objfile.ResolveIn(images, "libc.so.6", "__libc_single_threaded", objfile.Variable)
	if err != nil { // before glibc 2.32
		tids, err := procid.Threads(pid)
		return err == nil && len(tids) > 1, 0
	}
	return true, flag.Address
}

// single says whether the C library counts on one thread; true also where that cannot
// be read. To be asked while the process stands still where it may be entered.
func (p *plan) single() bool {
	var flag [1]byte
	return p.calls.oneThread != 0 && (p.process.Read(p.calls.oneThread, flag[:]) != nil || flag[0] != 0)
}

// exported finds a function that other objects can call.
func exported(image objfile.Image, name string) (objfile.Symbol, bool) {
	s, err := image.Symbol(name, objfile.Function)
	return s, err == nil && isExported(s)
}

func isExported(s objfile.Symbol) bool {
	return s.Dynamic && s.Section != elf.SHN_UNDEF && (s.Bind == elf.STB_GLOBAL || s.Bind == elf.STB_WEAK)
}

// realFunction stands behind a hook.
type realFunction struct {
	name    string
	address uint64
}

// findReals finds the functions behind the hooks. One that several objects
// define is left out: DMLib, inside, knows their order.
func findReals(pid int, images []objfile.Image, hooks map[string]uint64) (reals []realFunction) {
	found := make(map[string][]uint64)
	for _, image := range images {
		if image.Matches("libattune-dm*") || isProgram(pid, image) {
			continue
		}
		file, err := image.Open()
		if err != nil {
			return nil // it may define some
		}
		for name := range hooks {
			if s, err := file.SymbolOf(name, objfile.Function); err == nil && isExported(s) {
				address := image.Address(s.Value)
				if s.IFunc() {
					address = 0
				}
				found[name] = append(found[name], address)
			}
		}
		file.Close()
	}
	for name, addresses := range found {
		if len(addresses) == 1 && addresses[0] != 0 && len(name) < abi.AttachName {
			reals = append(reals, realFunction{name, addresses[0]})
		}
	}
	return reals
}

// findSlots finds the GOT slots of all objects that lead to functions which
// DMLib hooks. An object whose file cannot be read any more keeps its calls.
func findSlots(images []objfile.Image, hooks map[string]uint64, reals []realFunction) (slots []Slot) {
	behind := make(map[string]uint64)
	for _, r := range reals {
		behind[r.name] = r.address
	}
	var wanted []string
	for name := range hooks {
		wanted = append(wanted, name)
	}
	slices.Sort(wanted)
	for _, image := range images {
		if image.Matches("libattune-dm*") || isLoader(image) || isLibc(image) {
			continue
		}
		found, err := image.GOTSlots(wanted...)
		if err != nil {
			continue
		}
		for _, slot := range found {
			slots = append(slots, Slot{
				Address: image.Address(slot.VirtualAddress), Hook: hooks[slot.Symbol], RELRO: slot.RELRO,
				real: behind[slot.Symbol], origin: slot.Origin, bias: image.Bias,
			})
		}
	}
	return slots
}

// isLibc says whether an image is the C library or a part of it. Its own calls
// stay inside, as they do where DMLib is preloaded: fork, for one, holds the
// allocator's locks.
func isLibc(image objfile.Image) bool {
	return slices.ContainsFunc([]string{"libc.so.6", "libc-*.so", "libpthread.so.0", "libpthread-*.so"}, image.Matches)
}
