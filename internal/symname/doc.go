// SPDX-License-Identifier: Apache-2.0

// Package symname knows how symbols are called: as the linker has them, and
// as people write them.
//
// C++ and Rust compilers mangle namespaces and parameters into the names of
// symbols. [Demangle] turns such a name back for a display, and a [Query]
// finds symbols by any of their names. The package has no state, and names
// may come from files that nobody trusts: what one name costs is bounded.
package symname
