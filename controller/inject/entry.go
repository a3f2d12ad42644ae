// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/binary"

	"github.com/attune-hpc/attune/dmlib/abi"
)

// entryAnswer is what the process has said so far.
type entryAnswer struct {
	state, step     uint32
	errno           int32
	thread          int // as the process numbers it
	memory, library int // descriptors
	text            uint64
	value           uint64 // that a call returned
}

// decodeEntry reads the answer from a whole structure.
func decodeEntry(b []byte) entryAnswer {
	order := binary.LittleEndian
	number := func(at int) int { return int(int32(order.Uint32(b[at:]))) }
	return entryAnswer{
		state: order.Uint32(b[abi.EntryStateAt:]), step: order.Uint32(b[abi.EntryStepAt:]),
		errno: int32(order.Uint32(b[abi.EntryErrorAt:])), thread: number(abi.EntryThreadAt),
		memory: number(abi.EntryMemoryAt), library: number(abi.EntryLibraryAt),
		text: order.Uint64(b[abi.EntryTextAt:]), value: order.Uint64(b[abi.EntryValueAt:]),
	}
}
