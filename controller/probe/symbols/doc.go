// SPDX-License-Identifier: Apache-2.0

// Package symbols finds what a measure point means in the objects that a process
// maps: its functions and static probes, what its captures by name stand for in
// debug information, and the GOT slots that lead to its functions. It changes
// nothing and knows of no mechanism.
//
// All functions and methods may be called from any goroutine. Names and SlotTables
// remember what they have read, for all processes that map the same files; their
// zero values are ready.
package symbols
