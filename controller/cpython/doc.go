// SPDX-License-Identifier: Apache-2.0

// Package cpython reads what the interpreter of a Python program counts of its garbage
// collections, from outside: the state of the collector in the memory of the process,
// `_gc_runtime_state` in the sources of CPython 3.11 to 3.13 (Include/internal/pycore_gc.h).
//
// The state of the main interpreter is a part of the exported variable _PyRuntime, at
// another place in each version. [Locate] knows it by a pointer to its own beginning, the
// only such word: the head of the youngest generation. Builds without the global lock, which
// keep no generations, have no such word. Versions before 3.11, which allocate the
// interpreter, and from 3.14 on, whose collector is another one, are refused by what the
// interpreter says of its version.
//
// The memory belongs to the program, which may write anything there: all numbers are
// checked, and none is an address that is followed.
//
// Functions may be called from any goroutine.
package cpython
