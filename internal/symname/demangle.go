// SPDX-License-Identifier: Apache-2.0

package symname

import (
	"strings"

	"github.com/ianlancetaylor/demangle"
)

// Bounds of what is demangled. Longer names are left as they are: some
// templates have mangled names of megabytes, which nobody reads.
const (
	maxMangled = 4096
	// maxDemangledPower is the logarithm of the longest result, since
	// substitutions let a short name grow exponentially.
	maxDemangledPower = 14
)

// Mangled says whether a name looks like that of a C++ or Rust symbol: the
// Itanium C++ ABI's _Z, which old Rust compilers use too, or Rust's _R.
func Mangled(name string) bool {
	return strings.HasPrefix(name, "_Z") || strings.HasPrefix(name, "_R")
}

// Demangle returns a symbol's name as its source code has it, with the types
// of its parameters, and the name itself if it is not mangled, is not well
// formed or is too long. A version (f@V1) is kept.
func Demangle(name string) string { return demangled(name) }

// Function returns the demangled name without return type and parameters.
func Function(name string) string { return demangled(name, demangle.NoParams) }

// generic is Function without template arguments.
func generic(name string) string {
	return demangled(name, demangle.NoParams, demangle.NoTemplateParams)
}

func demangled(name string, options ...demangle.Option) string {
	if !Mangled(name) || len(name) > maxMangled {
		return name
	}
	symbol, version, versioned := strings.Cut(name, "@")
	text, err := demangle.ToString(symbol, append(options, demangle.MaxLength(maxDemangledPower))...)
	switch {
	case err != nil:
		return name
	case versioned:
		return text + "@" + version
	}
	return text
}
