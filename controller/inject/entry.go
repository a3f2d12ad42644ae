// SPDX-License-Identifier: Apache-2.0

package inject

import "encoding/binary"

// struct attune_entry of dmlib_attach.h: first what the process is told, then what
// it answers.
const (
	entryBase         = 0
	entrySize         = 8
	entryFrame        = 16
	entryUnmap        = 24
	entryCreate       = 32
	entryAttributes   = 40
	entrySetDetached  = 48
	entrySetStack     = 56
	entryOpen         = 64
	entrySymbol       = 72
	entryMessage      = 80
	entryAttach       = 88
	entryPath         = 96
	entryRequest      = 104
	entryCode         = 112
	entryValue        = 120
	entryMode         = 128
	entryFromMemory   = 132
	entryMilliseconds = 136
	entryGo           = 140
	entryState        = 144
	entryStep         = 148
	entryError        = 152
	entryThread       = 156
	entryMemory       = 160
	entryLibrary      = 164
	entryText         = 168
	entryBytes        = 176
)

// States, what lets the process go on, and the steps that may fail.
const (
	stateFilesMade = 1
	stateDone      = 2

	goFilled = 1
	goRead   = 2

	stepFiles  = 1
	stepWait   = 2
	stepLoad   = 3
	stepAttach = 4
	stepThread = 5
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
		state: order.Uint32(b[entryState:]), step: order.Uint32(b[entryStep:]),
		errno: int32(order.Uint32(b[entryError:])), thread: number(entryThread),
		memory: number(entryMemory), library: number(entryLibrary),
		text: order.Uint64(b[entryText:]), value: order.Uint64(b[entryValue:]),
	}
}
