// SPDX-License-Identifier: Apache-2.0

// Package sites owns the patched entries and returns of functions, one [Sites]
// per process: measure points and tuning actions meet there, also on one
// function, each comes and goes without the others losing a hit, and what is
// taken out leaves the code as it was, byte for byte.
//
// controller/patch makes the code; this package finds out what a process has,
// gets memory for it and writes it, from outside and while the process runs.
// docs/design says why each step can be taken under the feet of threads that
// run through it.
//
// Each of these knows those before it: a writer reads and writes a process, its
// codeMemory has it map memory, a builder makes there what patches lead to, a finder
// finds and prepares the places of functions, with what package object tells of
// their files, and a changer changes what is done at them. A Sites puts them together
// for each thing that is asked of it, a [Batch] once for many.
//
// A Sites serialises what it does to its process and may be used from any
// goroutine. [Functions] is shared by the Sites of a controller. Lock order:
// Sites, then Functions.
package sites
