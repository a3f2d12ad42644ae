// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"math/bits"
	"strings"

	"github.com/attune-hpc/attune/dmlib/abi"
)

// Family is a set of safe-point families: kinds of hooks at which a command
// may run.
type Family uint32

// Safe-point families. A thread that enters an allocation hook could legally
// call the allocator, so calls that take its locks are safe at AtAlloc only.
const (
	AtAlloc Family = abi.AtAlloc
	AtLock  Family = abi.AtLock
	AtIO    Family = abi.AtIO
	AtStub  Family = abi.AtStub
	// AtHooks is any hook or stub, for what takes no lock of the program.
	AtHooks = AtAlloc | AtLock | AtIO | AtStub
	// AtPatch is the entry of any patched function, inside whatever lock:
	// nothing is called there.
	AtPatch Family = abi.AtPatch
	// AtGate is the start gate, as long as the process waits in it: OpNop and
	// OpMap only.
	AtGate Family = abi.AtGate
	// AtStopped is wherever a thread was when the attendant stopped it; nothing
	// is called there. Run adds it where that will do.
	AtStopped Family = abi.AtStopped

	familyCount = 7
	atAny       = 1<<familyCount - 1
)

// String lists the functions' kinds, for messages.
func (f Family) String() string {
	names := [familyCount]string{"allocation", "lock", "read or write", "bound function", "patched function", "start gate", "stopped thread"}
	var in []string
	for rest := f & atAny; rest != 0; rest &= rest - 1 {
		in = append(in, names[bits.TrailingZeros32(uint32(rest))])
	}
	if len(in) == 0 {
		return "none"
	}
	return strings.Join(in, ", ")
}
