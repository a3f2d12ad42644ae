// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"cmp"
	"fmt"
	"math/bits"
	"os"

	"github.com/attune-hpc/attune/dmlib/abi"
)

// attempts is how many sizes DMLib tries; DM_GATE_ATTEMPTS of dmlib/src/gate.h.
const attempts = 3

// Headers returns the headers, HeaderSize bytes each, of the file that New makes
// and of the smaller ones that a process with little address space is offered: a
// process that cannot wait for its controller makes its own (Adopt).
func Headers(g Geometry) []byte {
	var headers []byte
	for more := true; more && len(headers) < attempts*abi.HeaderBytes; g, more = g.Smaller() {
		headers = append(headers, headerOf(g.withDefaults())...)
	}
	return headers
}

// headerOf is the controller's part of a file of this geometry, which is complete.
func headerOf(g Geometry) []byte {
	header := make([]byte, abi.HeaderBytes)
	writeHeader(header, g)
	return header
}

// Adopt maps a memory file that a process has made of one of the Headers, maybe of those
// of another machine: a packed program brings the ones of the machine it was packed on.
// It is input that nobody vouches for: a file that could shrink, or whose header says
// anything else than a new one's, is ErrForeign. It owns the file from now on,
// also when it returns an error.
func Adopt(file *os.File) (*Memory, error) {
	return owning(file, func() (*Memory, error) {
		header := make([]byte, abi.HeaderBytes)
		if _, err := file.ReadAt(header, 0); err != nil {
			return nil, fmt.Errorf("%w: read its header: %w", ErrForeign, err)
		}
		g, err := geometryOf(header)
		if err != nil {
			return nil, err
		}
		if err := checkSealed(file, int64(g.place().total)); err != nil {
			return nil, err
		}
		return assemble(file, g)
	})
}

// geometryOf reads the geometry out of a header, which must place everything where New
// would, in no more bytes than the largest machine's file has.
func geometryOf(header []byte) (Geometry, error) {
	count := func(at int) int { return int(load32(header, at)) }
	g := Geometry{
		Slots: count(abi.HeaderSlotCountAt), Rings: count(abi.HeaderRingCountAt), RingRecords: count(abi.HeaderRingRecordsAt),
		Programs: cmp.Or(count(abi.HeaderProgramCountAt), -1), Tables: cmp.Or(count(abi.HeaderTableCountAt), -1),
	}
	// The counts are bounded first: the size of others does not fit into an int.
	if g.Slots < 1 || g.Slots > maxSlots || g.Rings < 1 || g.Rings > maxRings || bits.OnesCount(uint(g.RingRecords)) != 1 ||
		g.place().total > GeometryFor(maxSlots, 1).place().total {
		return g, fmt.Errorf("%w: no machine has files of %+v", ErrForeign, g)
	}
	if string(header[:abi.HeaderPIDAt]) != string(headerOf(g)[:abi.HeaderPIDAt]) {
		return g, fmt.Errorf("%w: another version's or another's header", ErrForeign)
	}
	return g, nil
}
