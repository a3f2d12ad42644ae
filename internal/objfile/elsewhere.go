// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"debug/elf"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/attune-hpc/attune/internal/symname"
)

// Callee returns the object into which calls through a slot go that holds a value: the
// one of a function, or another one that has a function of that name there. A name says
// little of what a slot leads to: an allocator of the program's own stands before the C
// library's, a tracer before MPI, and each of several plug-ins may have a function of
// the same name. False: the value does not tell, as before the loader has bound the slot
// or where a hook leads on; see [Namesake].
func Callee(images []Image, name string, function, value uint64) (Image, bool) {
	for _, image := range images {
		switch {
		case !image.Has(value):
			continue
		case image.Has(function):
			return image, true
		}
		symbol, err := image.Symbol(name, Function)
		return image, err == nil && image.Address(symbol.Value) == value
	}
	return Image{}, false
}

// Namesake returns another object than that of a function which has a function of the
// same name for others to call. While there is none, calls by that name go to the
// function. The parts of one C library are no namesakes, nor is its loader. exports is
// [Image.Exports], or what remembers it.
func Namesake(images []Image, name string, function uint64, exports func(Image, string) bool) (Image, bool) {
	libc := false
	for _, image := range images {
		libc = libc || image.Has(function) && image.IsLibc()
	}
	for _, image := range images {
		if image.Has(function) || image.IsLoader() || libc && image.IsLibc() {
			continue
		}
		if exports(image, name) {
			return image, true
		}
	}
	return Image{}, false
}

// Exports says whether other objects can call a function of that name in the object.
// One whose file cannot be read has none.
func (i Image) Exports(name string) (found bool) {
	i.EachExport(func(exported []byte) { found = found || string(exported) == name })
	return found
}

// EachExport calls visit with the name of each function of the object that others can
// call; none of one whose file cannot be read. The name is visit's until it returns.
func (i Image) EachExport(visit func(name []byte)) {
	file, err := i.Open()
	if err != nil {
		return
	}
	defer func() { _ = file.Close() }() // read only
	table, err := file.dynamicSymbols()
	if err != nil {
		return
	}
	for n := range table.count() {
		entry := table.entry(n)
		s := Symbol{Section: elf.SectionIndex(entry.Shndx), Type: elf.ST_TYPE(entry.Info), Bind: elf.ST_BIND(entry.Info)}
		if s.Section != elf.SHN_UNDEF && s.Bind != elf.STB_LOCAL && s.Is(Function) {
			visit(table.name(entry))
		}
	}
}

// Has says whether an address of the process lies in the object.
func (i Image) Has(address uint64) bool { return address >= i.Start && address < i.End }

// IsLibc says whether an object is the C library or a part of it.
func (i Image) IsLibc() bool {
	return slices.ContainsFunc([]string{"libc.so.6", "libc-*.so", "libpthread.so.0", "libpthread-*.so"}, i.Matches)
}

// IsLoader says whether an object is the dynamic loader.
func (i Image) IsLoader() bool {
	return slices.ContainsFunc([]string{"ld-linux", "ld-2.", "ld.so"}, func(prefix string) bool { return strings.HasPrefix(i.Name(), prefix) })
}

// ErrNoObject says that the process has mapped no object of that name.
var ErrNoObject = errors.New("no such object is mapped")

// NoObject is the error of an object that a process has not mapped, with the
// program, and what is close to the name; or, where nothing is, what is mapped. What
// cannot be opened any more may be the object: [ErrReplaced] as well.
func NoObject(images []Image, object string) error {
	closest := symname.NewSuggestions(filepath.Base(object), maxListed)
	var program string
	var libraries []string
	for _, image := range images {
		closest.Add([]byte(image.Name()))
		if !image.Main() {
			libraries = append(libraries, image.Name())
			continue
		}
		program = image.Name()
		for name := range strings.SplitSeq(image.known, "\x00") {
			closest.Add([]byte(filepath.Base(name)))
		}
	}
	err := fmt.Errorf("%w: %s", ErrNoObject, object)
	if program != "" {
		err = fmt.Errorf("%w; the program is %s", err, program)
	}
	names, what := closest.Names(), "close to it"
	if len(names) == 0 {
		names, what = libraries, "it has mapped"
	}
	if len(names) > 0 {
		err = fmt.Errorf("%w; %s: %s", err, what, strings.Join(names[:min(len(names), maxListed)], ", "))
	}
	if more := len(names) - maxListed; more > 0 {
		err = fmt.Errorf("%w and %d more", err, more)
	}
	if gone := LeftOut(images); len(gone) > 0 {
		err = fmt.Errorf("%w; %w: %s", err, ErrReplaced, strings.Join(gone[:min(len(gone), maxListed)], ", "))
	}
	return err
}
