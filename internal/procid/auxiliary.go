// SPDX-License-Identifier: Apache-2.0

package procid

import (
	"encoding/binary"
	"fmt"
)

// AuxExecuted is AT_EXECFN of getauxval(3): the address of the path that
// execve(2) was given.
const AuxExecuted = 31

// AuxEntry is AT_ENTRY: the address at which the program begins, after the dynamic
// loader.
const AuxEntry = 9

// maxAuxiliaryBytes is more than the kernel writes: some twenty pairs.
const maxAuxiliaryBytes = 4096

// Auxiliary returns a value of the auxiliary vector that the kernel gave to the
// process' present image, 0 if it is not there. [ErrGone] if it has ended. Only
// 64-bit processes are understood.
func Auxiliary(pid int, key uint64) (uint64, error) {
	vector, err := ReadFile(pid, "auxv", maxAuxiliaryBytes)
	if err != nil {
		return 0, fmt.Errorf("auxiliary vector: %w", err)
	}
	return auxiliary(vector, key), nil
}

func auxiliary(vector []byte, key uint64) uint64 {
	const word = 8
	for ; len(vector) >= 2*word; vector = vector[2*word:] {
		if binary.NativeEndian.Uint64(vector) == key {
			return binary.NativeEndian.Uint64(vector[word:])
		}
	}
	return 0
}
