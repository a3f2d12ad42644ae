// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"errors"
	"fmt"
	"slices"
)

const (
	// raise begins to unwind the stack for an exception, in whatever language.
	raise = "_Unwind_RaiseException"
	// throw raises an exception of C++; what is linked to its runtime statically has it.
	throw = "__cxa_throw"
	// swap goes on on another stack. Libraries have it for others (libc, and those of
	// sanitizers), so that only who imports it counts, and a static program.
	swap = "swapcontext"
)

// unwinders are the libraries that have raise for others; C programs load them, too.
var unwinders = []string{"libgcc_s.so*", "libunwind*.so*"}

// switches are functions like swap that objects have in themselves: of Boost.Context and
// PHP, of libcoro, and of Ruby.
var switches = []string{"jump_fcontext", "coro_transfer", "coroutine_transfer"}

// Why no return probe of the kernel is put into a process. The probe changes the return
// address, and the kernel remembers it for the thread.
var (
	// ErrThrows: the process may throw. The unwinder takes what the probe has written for
	// the end of the stack, and the program is terminated.
	ErrThrows = errors.New("the process can throw exceptions, and one that passes a return probe of the kernel would end it")
	// ErrSwitches: the process may run several stacks in one thread. When a call begins on
	// a stack, the kernel takes those on stacks below for left, and forgets them: they
	// return to nowhere.
	ErrSwitches = errors.New("the process can switch between stacks (fibers, user-level threads), and a switch in a call with a return probe of the kernel could end it")
)

// ReturnProbes says why a return probe of the kernel could end a process that has these
// images ([ErrThrows], [ErrSwitches]), or that this is not known; nil: none can. slots is
// [Image.GOTSlots], or has kept what that returned.
func ReturnProbes(images []Image, slots func(Image, ...string) ([]Slot, error)) error {
	for _, image := range images {
		if err := image.returnProbes(slots); err != nil {
			return fmt.Errorf("%w (%s)", err, image.Name())
		}
	}
	return nil
}

// returnProbes is [ReturnProbes] of one image.
func (i Image) returnProbes(slots func(Image, ...string) ([]Slot, error)) error {
	imported, err := slots(i, raise, swap)
	if err != nil && !errors.Is(err, ErrNoSection) {
		return fmt.Errorf("whether exceptions are thrown or stacks switched is not known: %w", err)
	}
	imports := func(name string) bool {
		return slices.ContainsFunc(imported, func(s Slot) bool { return s.Symbol == name })
	}
	switching, throwing := switches, []string{throw}
	if i.Main() {
		switching = append(slices.Clone(switching), swap)
	} else { // a static program of C has it for the cancellation of threads
		throwing = append(throwing, raise)
	}
	unwinder := slices.ContainsFunc(unwinders, i.Matches)
	if unwinder {
		throwing = nil
	}
	own := i.defined(slices.Concat(throwing, switching))
	switch {
	case !unwinder && imports(raise) || slices.Contains(throwing, own):
		return ErrThrows
	case imports(swap) || own != "":
		return ErrSwitches
	}
	return nil
}

// defined returns the first of some functions that the file of an image has; "": none. The
// debug symbols are read for the program alone: a process may have hundreds of libraries.
func (i Image) defined(names []string) string {
	file, err := i.Open()
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }() // read only
	at := slices.IndexFunc(names, func(name string) bool {
		if !i.Main() {
			_, err := file.SymbolOf(name, Function)
			return err == nil
		}
		found, err := file.Functions(name)
		return errors.Is(err, ErrAmbiguous) || err == nil && len(found) > 0
	})
	if at < 0 {
		return ""
	}
	return names[at]
}
