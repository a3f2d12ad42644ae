// SPDX-License-Identifier: Apache-2.0

// Package inherit tells what this process was started with, before the Go
// runtime changed it: which of the standard descriptors were closed (the
// runtime opens /dev/null on them), which signals were ignored (the runtime
// installs handlers over most of them) and which were blocked (it unblocks
// some). A program that is started by this process gets them back exactly.
//
// The record is made by a few instructions that run ahead of the runtime: link
// with
//
//	go build -ldflags '-E attune_entry'
//
// and without cgo (CGO_ENABLED=0), so that the process starts there and then
// jumps to the runtime's own entry. A binary that was linked without the flag
// works too; it can then only tell what the runtime leaves visible, and says
// so by State.Exact.
//
// The state is written once, before main, and only read afterwards: it needs
// no lock.
package inherit
