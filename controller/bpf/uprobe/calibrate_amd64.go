// SPDX-License-Identifier: Apache-2.0

package uprobe

// calibrationEntries returns the addresses of functions that do nothing, whose
// first instructions are of the classes optimised, emulated and single-stepped
// where the kernel knows the former two.
func calibrationEntries() (nop, push, other uintptr)

// callEntry calls a function so many times, at least once.
//
//go:noescape
func callEntry(entry uintptr, calls int)
