// SPDX-License-Identifier: Apache-2.0

// Package object tells what the files of code say about their functions: how an entry
// may be patched, where the exits are, and what is around. It reads no process; where
// an address of one is meant, the caller says by which bias the file is mapped.
//
// An [Object] reads the file as far as it is asked, and keeps what it has read; it and
// a [Cache] are for one goroutine.
package object
