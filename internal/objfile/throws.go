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
)

// unwinders are the libraries that have raise for others; C programs load them, too.
var unwinders = []string{"libgcc_s.so*", "libunwind*.so*"}

// ErrThrows is why no return probe of the kernel is put into a process that may throw:
// the probe changes the return address, the unwinder takes that for the end of the
// stack, and the program is terminated.
var ErrThrows = errors.New("the process can throw exceptions, and one that passes a return probe of the kernel would end it")

// Throws says that an exception may be thrown in a process that has these images
// ([ErrThrows]), or that it is not known; nil: none can be. slots is [Image.GOTSlots],
// or has kept what that returned.
func Throws(images []Image, slots func(Image, ...string) ([]Slot, error)) error {
	for _, image := range images {
		if slices.ContainsFunc(unwinders, image.Matches) {
			continue
		}
		raises, err := slots(image, raise)
		if err != nil && !errors.Is(err, ErrNoSection) {
			return fmt.Errorf("whether %s throws exceptions is not known: %w", image.Name(), err)
		}
		// A static program of C has raise for the cancellation of threads.
		runtime := []string{throw}
		if !image.Main() {
			runtime = append(runtime, raise)
		}
		if len(raises) > 0 || image.defines(runtime...) {
			return fmt.Errorf("%w (%s)", ErrThrows, image.Name())
		}
	}
	return nil
}

// defines says whether the file of an image has one of some functions. The debug symbols
// are read for the program alone: a process may have hundreds of libraries.
func (i Image) defines(names ...string) bool {
	file, err := i.Open()
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }() // read only
	return slices.ContainsFunc(names, func(name string) bool {
		if !i.Main() {
			_, err := file.SymbolOf(name, Function)
			return err == nil
		}
		found, err := file.Functions(name)
		return errors.Is(err, ErrAmbiguous) || err == nil && len(found) > 0
	})
}
