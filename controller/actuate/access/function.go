// SPDX-License-Identifier: Apache-2.0

package access

import (
	"errors"
	"fmt"

	"github.com/attune-hpc/attune/controller/sites"
	"github.com/attune-hpc/attune/internal/objfile"
)

// Lookup finds a symbol, in any of the forms of measure points, among the
// objects that the process maps now. What cannot be found is refused, not
// failed: nothing was touched.
func Lookup(process Process, object, symbol string, kind objfile.SymbolKind) (objfile.Resolved, error) {
	return findSymbol(process, object, symbol, kind, objfile.LookupIn)
}

// findSymbol finds a symbol among the objects that the process maps now.
func findSymbol(process Process, object, symbol string, kind objfile.SymbolKind,
	in func([]objfile.Image, string, string, objfile.SymbolKind) (objfile.Resolved, error),
) (objfile.Resolved, error) {
	images, err := process.Images()
	if err != nil {
		return objfile.Resolved{}, fmt.Errorf("mappings of process %d: %w", process.PID(), err)
	}
	found, err := in(images, object, symbol, kind)
	if err != nil {
		return found, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return found, nil
}

// choice is how an indirect function (IFUNC) is told from what it stands for.
type choice func(sites *sites.Sites, image objfile.Image, resolver objfile.Symbol) (sites.Function, error)

// naming is how requests name a function.
type naming interface {
	GetObject() string
	GetSymbol() string
}

// lookupFunction finds a function that is called; of an indirect one, what the
// process has chosen. If that is not known, or not what choose
// wants, the error wraps [objfile.ErrIndirect], and the resolver is returned.
func lookupFunction(process Process, f naming, choose choice) (objfile.Resolved, error) {
	found, err := Lookup(process, f.GetObject(), f.GetSymbol(), objfile.Function)
	if !errors.Is(err, objfile.ErrIndirect) {
		return found, err
	}
	chosen, err := choose(process.Sites(), found.Image, found.Symbol)
	if err != nil {
		return found, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	found.Symbol, found.Address = chosen.Symbol, found.Image.Address(chosen.Symbol.Value)
	return found, nil
}

// LookupChanged finds a function whose code is to be changed.
func LookupChanged(process Process, f naming) (objfile.Resolved, error) {
	return lookupFunction(process, f, (*sites.Sites).ChosenAlone)
}

// LookupCalled finds a function that is to be called.
func LookupCalled(process Process, f naming) (objfile.Resolved, error) {
	return lookupFunction(process, f, (*sites.Sites).Chosen)
}

// Resolve is Lookup for the very name of a symbol.
func Resolve(process Process, object, symbol string, kind objfile.SymbolKind) (objfile.Resolved, error) {
	return findSymbol(process, object, symbol, kind, objfile.ResolveIn)
}

// LookupSingle finds the function in the only object that has it.
func LookupSingle(process Process, function string) (found objfile.Resolved, err error) {
	images, err := process.Images()
	if err != nil {
		return found, fmt.Errorf("mappings of process %d: %w", process.PID(), err)
	}
	for _, image := range images {
		symbol, err := image.Symbol(function, objfile.Function)
		switch {
		case err != nil:
			continue
		case found.Address != 0:
			return found, fmt.Errorf("both %s and %s have %s", found.Image.Name(), image.Name(), function)
		}
		found = objfile.Resolved{Address: image.Address(symbol.Value), Symbol: symbol, Image: image}
	}
	if found.Address == 0 {
		return found, fmt.Errorf("%w: no object of process %d has %s", ErrAbsent, process.PID(), function)
	}
	return found, nil
}

// ErrAbsent says that a process has no library with the setting.
var ErrAbsent = errors.New("the process does not use it")
