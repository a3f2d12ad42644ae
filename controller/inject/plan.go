// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"debug/elf"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/attune-hpc/attune/controller/ring"
	"github.com/attune-hpc/attune/internal/objfile"
)

// plan is all that can be known before anything is stopped.
type plan struct {
	options Options
	pid     int
	ground  ground
	calls   calls
	slots   []Slot       // Hook is an offset from DMLib's load address
	late    map[int]bool // threads that were told to stop and did not yet
	job     job
	// thread is the only one that will do; 0: any. anywhere says that the job
	// takes no lock and calls nothing, so that it may interrupt anything.
	thread   int
	anywhere bool
}

// calls are the addresses of functions in the process.
type calls struct {
	open, sym, message uint64 // message 0: no dlerror
	mode               uint32 // of open
}

// Modes of dlopen; the internal one wants to be told that it is meant.
const (
	modeNow      = 2
	modeInternal = 0x80000000
)

func newPlan(pid int, o Options) (*plan, error) {
	images, err := o.Cache.Images(pid)
	if err != nil {
		return nil, err
	}
	p := &plan{options: o, pid: pid, late: make(map[int]bool)}
	if p.calls, err = findCalls(images); err != nil {
		return nil, err
	}
	if p.ground, err = newGround(pid, images); err != nil {
		return nil, err
	}
	p.job = attachment{p}
	p.slots, err = findSlots(images, o.Library)
	return p, err
}

// findCalls finds dlopen and its companions: in libc since glibc 2.34, in
// libdl before, and libc's internal ones where there is no libdl.
func findCalls(images []objfile.Image) (c calls, err error) {
	libc := func(name string) uint64 {
		for _, object := range []string{"libc.so.6", "libdl.so.2", "libdl-*.so", "libc-*.so"} {
			found, e := objfile.ResolveIn(images, object, name, objfile.Function)
			if e == nil {
				return found.Address
			}
		}
		return 0
	}
	c = calls{open: libc("dlopen"), sym: libc("dlsym"), message: libc("dlerror"), mode: modeNow}
	if c.open == 0 || c.sym == 0 {
		c = calls{open: libc("__libc_dlopen_mode"), sym: libc("__libc_dlsym"), mode: modeNow | modeInternal}
	}
	if c.open == 0 || c.sym == 0 {
		return c, fmt.Errorf("%w: its C library has no dlopen", ErrUnsuited)
	}
	return c, nil
}

// findSlots finds the GOT slots of all objects that lead to functions which
// DMLib hooks. An object whose file cannot be read any more keeps its calls.
func findSlots(images []objfile.Image, library string) (slots []Slot, err error) {
	hooks, err := hookOffsets(library)
	if err != nil {
		return nil, err
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
		found, err := slotsOf(image, wanted)
		if err != nil {
			continue
		}
		for _, slot := range found {
			slots = append(slots, Slot{Address: image.Address(slot.VirtualAddress), Hook: hooks[slot.Symbol], RELRO: slot.RELRO})
		}
	}
	return slots, nil
}

func slotsOf(image objfile.Image, wanted []string) ([]objfile.Slot, error) {
	file, err := image.Open()
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return file.GOTSlots(wanted...)
}

// isLibc says whether an image is the C library or a part of it. Its own calls
// stay inside, as they do where DMLib is preloaded: fork, for one, holds the
// allocator's locks.
func isLibc(image objfile.Image) bool {
	return slices.ContainsFunc([]string{"libc.so.6", "libc-*.so", "libpthread.so.0", "libpthread-*.so"}, image.Matches)
}

// hookOffsets returns what the library exports for programs to call, by name.
func hookOffsets(library string) (map[string]uint64, error) {
	file, err := objfile.Open(library)
	if err != nil {
		return nil, fmt.Errorf("dmlib: %w", err)
	}
	defer file.Close()
	symbols, err := file.Match("*", objfile.Function)
	if err != nil {
		return nil, fmt.Errorf("dmlib: %w", err)
	}
	hooks := make(map[string]uint64)
	for _, s := range symbols {
		if s.Dynamic && s.Bind == elf.STB_GLOBAL && !strings.HasPrefix(s.Name, "attune_") {
			hooks[s.Name] = s.Value
		}
	}
	for _, h := range ring.Hooks() {
		if _, ok := hooks[h.Name]; !ok {
			return nil, errors.New("dmlib lacks the hook " + h.Name)
		}
	}
	return hooks, nil
}
