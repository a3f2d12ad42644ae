// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"fmt"
	"math"
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
		header := make([]byte, abi.HeaderBytes)
		writeHeader(header, g.withDefaults())
		headers = append(headers, header...)
	}
	return headers
}

// Adopt maps a memory file that a process has made of one of the Headers. It is
// input that nobody vouches for: a file that could shrink, or whose header says
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

// geometryOf reads the geometry out of a header, which must place everything
// where New would.
func geometryOf(header []byte) (Geometry, error) {
	count := func(at int) int { return int(min(load32(header, at), math.MaxInt32)) }
	orNone := func(n int) int {
		if n == 0 {
			return -1
		}
		return n
	}
	g := Geometry{
		Slots: count(abi.HeaderSlotCountAt), Rings: count(abi.HeaderRingCountAt), RingRecords: count(abi.HeaderRingRecordsAt),
		Programs: orNone(count(abi.HeaderProgramCountAt)), Tables: orNone(count(abi.HeaderTableCountAt)),
	}
	if err := g.validate(); err != nil {
		return g, fmt.Errorf("%w: %w", ErrForeign, err)
	}
	want := make([]byte, abi.HeaderBytes)
	writeHeader(want, g)
	if string(header[:abi.HeaderPIDAt]) != string(want[:abi.HeaderPIDAt]) {
		return g, fmt.Errorf("%w: another version's or another's header", ErrForeign)
	}
	return g, nil
}
