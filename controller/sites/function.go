// SPDX-License-Identifier: Apache-2.0

package sites

import "github.com/attune-hpc/attune/internal/objfile"

// Function is a function in a process, as objfile.ResolveIn finds it.
type Function struct {
	Image  objfile.Image
	Symbol objfile.Symbol
}

// address of its first instruction in the process.
func (f Function) address() uint64 { return f.Image.Address(f.Symbol.Value) }

// Same says whether both are one function at one address.
func (f Function) Same(other Function) bool { return placeOf(f) == placeOf(other) }

// Key names a function on a node: the file that holds it and where in it.
type Key struct{ Device, Inode, Offset uint64 }

// KeyOf returns the key of a function.
func KeyOf(f Function) Key {
	return Key{f.Image.Device, f.Image.Inode, f.Symbol.FileOffset}
}

// fileOf is the key of the file that holds a function.
func fileOf(f Function) Key { return Key{Device: f.Image.Device, Inode: f.Image.Inode} }

// place tells functions apart: after a library was unloaded another one may lie
// where it lay.
type place struct {
	address uint64
	key     Key
}

func placeOf(f Function) place { return place{f.address(), KeyOf(f)} }

// Where says at which places of a function a point measures.
type Where struct {
	// Entry of the function.
	Entry bool
	// Exits of the function; with Entry, durations are measured, which is refused
	// where the function may jump to another one in tail position.
	Exits bool
	// Beside lets jumps reach into the function behind this one. Our own uprobes
	// keep away from there, but a breakpoint of another tool at the entry of that
	// function would lead the jump astray, and end the process.
	Beside bool
	// Result says that what the function returns is wanted at each exit.
	Result bool
}
