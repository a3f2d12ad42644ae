// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"structs"
	"time"
	"unsafe"
)

// Taken is what threads took that the kernel is done with. Times are in
// nanoseconds. The layout is that of struct taken in taken.h.
type Taken struct {
	_ structs.HostLayout
	// Runtime is CPU time, to the nanosecond; Wait is time in which they could have run
	// and had no CPU. User and System are what the
	// kernel's ticks saw of it: their shares count, not their sum.
	Runtime, Wait, User, System uint64
	// ReadChars and WrittenChars are bytes that system calls moved, by
	// ReadCalls and WrittenCalls.
	ReadChars, WrittenChars, ReadCalls, WrittenCalls uint64
	// ReadBytes and WrittenBytes are those of storage; CancelledBytes of the
	// latter were of files that were removed before.
	ReadBytes, WrittenBytes, CancelledBytes uint64
	// Voluntary and Involuntary are context switches.
	Voluntary, Involuntary   uint64
	MinorFaults, MajorFaults uint64
}

// TakenOf returns what a generated struct of this layout holds.
func TakenOf[T any](raw *T) Taken {
	if unsafe.Sizeof(*raw) != unsafe.Sizeof(Taken{}) {
		panic("it has another layout")
	}
	return *(*Taken)(unsafe.Pointer(raw))
}

// Storage is what was to be written to storage, without what was removed before.
func (t Taken) Storage() uint64 { return t.WrittenBytes - min(t.WrittenBytes, t.CancelledBytes) }

// Shares divides Runtime into time outside of the kernel and time in it, as
// wait4(2) does.
func (t Taken) Shares() (user, system time.Duration) {
	seen := t.User + t.System
	if t.System == 0 || seen == 0 {
		return time.Duration(t.Runtime), 0
	}
	system = time.Duration(float64(t.Runtime) * (float64(t.System) / float64(seen)))
	return time.Duration(t.Runtime) - system, system
}
