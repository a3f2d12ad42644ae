// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"fmt"
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
	for _, g := range offers(g) {
		headers = append(headers, headerOf(g)...)
	}
	return headers
}

// offers are the geometries that a process may choose from, without zeros.
func offers(g Geometry) (all []Geometry) {
	for more := true; more && len(all) < attempts; g, more = g.Smaller() {
		all = append(all, g.withDefaults())
	}
	return all
}

func headerOf(g Geometry) []byte {
	header := make([]byte, abi.HeaderBytes)
	writeHeader(header, g)
	return header
}

// Adopt maps a memory file that a process has made of one of the Headers of g. It is
// input that nobody vouches for: a file that could shrink, or whose header says
// anything else than one of those, is ErrForeign. It owns the file from now on,
// also when it returns an error.
func Adopt(file *os.File, g Geometry) (*Memory, error) {
	return owning(file, func() (*Memory, error) {
		header := make([]byte, abi.HeaderBytes)
		if _, err := file.ReadAt(header, 0); err != nil {
			return nil, fmt.Errorf("%w: read its header: %w", ErrForeign, err)
		}
		g, err := offered(header, g)
		if err != nil {
			return nil, err
		}
		if err := checkSealed(file, int64(g.place().total)); err != nil {
			return nil, err
		}
		return assemble(file, g)
	})
}

// offered finds the geometry of a header among those that Headers offers of g: another one could
// name any size.
func offered(header []byte, g Geometry) (Geometry, error) {
	for _, g := range offers(g) {
		if string(header[:abi.HeaderPIDAt]) == string(headerOf(g)[:abi.HeaderPIDAt]) {
			return g, nil
		}
	}
	return g, fmt.Errorf("%w: another version's or another's header", ErrForeign)
}
