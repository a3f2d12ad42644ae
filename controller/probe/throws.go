// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"errors"
	"fmt"

	"github.com/attune-hpc/attune/internal/objfile"
)

const (
	// raise begins to unwind the stack for an exception, in whatever language.
	raise = "_Unwind_RaiseException"
	// throw raises an exception of C++; a program that is linked statically has it.
	throw = "__cxa_throw"
	// unwinder is the library that has raise; C programs load it, too.
	unwinder = "libgcc_s.so*"
)

// errThrows is why no return probe is put into a process that may throw: the
// probe changes the return address, the unwinder takes that for the end of the
// stack, and the program is terminated.
var errThrows = errors.New("the process can throw exceptions, and one that passes a return probe of the kernel would end it")

// throws says that an exception may be thrown in a process.
func (t *tenant) throws(images []objfile.Image) error {
	for _, image := range images {
		if image.Matches(unwinder) {
			continue
		}
		raises, err := t.placer.slots.matching(image, []string{raise})
		if err != nil && !errors.Is(err, objfile.ErrNoSection) {
			return fmt.Errorf("whether %s throws exceptions is not known: %w", image.Name(), err)
		}
		if len(raises) > 0 || t.isProgram(image) && defines(image, throw) {
			return fmt.Errorf("%w (%s)", errThrows, image.Name())
		}
	}
	return nil
}

// endangers says why a point must not stay as it is: what the process has loaded
// since can throw exceptions. The caller holds t.mu.
func (t *tenant) endangers(index uint16) error {
	if p := t.placed[index]; p == nil || !p.atReturn {
		return nil
	}
	images, err := t.images()
	if err != nil {
		return nil //nolint:nilerr // it has ended
	}
	return t.throws(images)
}

// defines says whether the file of an image has a function.
func defines(image objfile.Image, name string) bool {
	file, err := image.Open()
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }() // read only
	found, err := file.Functions(name)
	return err == nil && len(found) > 0
}
