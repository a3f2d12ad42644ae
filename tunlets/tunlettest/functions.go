// SPDX-License-Identifier: Apache-2.0

package tunlettest

import (
	"debug/elf"
	"path"
	"path/filepath"
	"slices"
	"sync"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// systemLibraries are objects that every program has.
var systemLibraries = []string{"libc.so.6", "libm.so.6", "libpthread.so.0", "ld-linux-x86-64.so.2"}

// libcFunctions are the names in this machine's C library; nil: it is not found.
var libcFunctions = sync.OnceValue(func() (names []string) {
	for _, pattern := range []string{"/lib/*/libc.so.6", "/lib64/libc.so.6", "/usr/lib/libc.so.6"} {
		files, _ := filepath.Glob(pattern) // the patterns are right
		for _, file := range files {
			library, err := elf.Open(file) //nolint:forbidigo // the system's own library
			if err != nil {
				continue
			}
			symbols, err := library.DynamicSymbols()
			_ = library.Close() // read only
			if err != nil {
				continue
			}
			for _, s := range symbols {
				if s.Section != elf.SHN_UNDEF {
					names = append(names, s.Name)
				}
			}
			return names
		}
	}
	return nil
})

// ownFunction refuses measure points on functions that are neither main nor a library's of the
// system: programs without a problem have none of their own, so that a tunlet of one program's
// function may look for it in what computes. Where the C library is not found all functions are
// there.
func ownFunction(point *attunev1.MeasurePoint, _ *Process) string {
	f, names := point.GetFunction(), libcFunctions()
	if f == nil || names == nil {
		return ""
	}
	everywhere := f.GetObject() == "" || f.GetObject() == "*"
	if !everywhere && matches(f.GetObject(), systemLibraries) {
		return ""
	}
	for _, symbol := range f.GetSymbols() {
		if everywhere && (matches(symbol, names) || matches(symbol, []string{"main"})) {
			return ""
		}
	}
	return "no such symbol"
}

// matches says whether a pattern matches one of the names; a broken one matches all.
func matches(pattern string, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		ok, err := path.Match(pattern, name)
		return ok || err != nil
	})
}
