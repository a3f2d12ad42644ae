// SPDX-License-Identifier: Apache-2.0

// Package dwarfinfo tells parameters of functions by name and type, and where
// a path such as queue.head->next lies, from DWARF 4 and 5 in the file itself
// or in its separate debug file.
//
// An [Info] holds the debug sections of one file in memory for as long as it
// is used, since types lie anywhere in them; it is for one goroutine. Files
// are not trusted: sections have a greatest size, every walk is bounded, and
// what debug/dwarf cannot stand is reported as corrupt.
package dwarfinfo
