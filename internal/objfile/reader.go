// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/attune-hpc/attune/internal/bounded"
)

// Errors of opening files and looking things up in them.
var (
	// ErrNotELF says that the file does not begin as an ELF file.
	ErrNotELF = errors.New("not an ELF file")
	// ErrUnsupported says that it is an ELF file of a kind that is not read:
	// 32-bit, big-endian, or of a newer version.
	ErrUnsupported = errors.New("unsupported kind of ELF file")
	// ErrCorrupt says that the file contradicts itself or is cut off.
	ErrCorrupt = errors.New("corrupt ELF file")
	// ErrNoSymbol says that no table of the file defines the symbol.
	ErrNoSymbol = errors.New("no such symbol")
)

// Greatest sizes. The largest programs known (browsers with full symbol
// tables) stay below a half of them.
const (
	maxProgramHeaders = 4096
	maxSections       = 65536
	maxDynamicBytes   = 1 << 20
	maxTableBytes     = 64 << 20
	maxNoteBytes      = 1 << 20
	maxNameBytes      = 4096
)

// reader is bounded random access to an untrusted file.
type reader struct {
	at   io.ReaderAt
	size uint64
}

// bytes reads a range that must lie in the file and be no longer than limit.
func (r reader) bytes(what string, offset, size, limit uint64) ([]byte, error) {
	if offset > r.size || size > r.size-offset {
		return nil, fmt.Errorf("%w: %s ends beyond the end of the file", ErrCorrupt, what)
	}
	data, err := bounded.Bytes(what, size, limit)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	if _, err := r.at.ReadAt(data, int64(offset)); err != nil {
		// The file shrank after its size was taken.
		return nil, fmt.Errorf("%w: %s: %w", ErrCorrupt, what, err)
	}
	return data, nil
}

// structAt decodes one fixed-size structure.
func (r reader) structAt(what string, offset uint64, target any) error {
	data, err := r.bytes(what, offset, uint64(binary.Size(target)), maxTableBytes)
	if err != nil {
		return err
	}
	if _, err := binary.Decode(data, binary.LittleEndian, target); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// text returns the string at an offset of a string table, "" if there is none.
func text(table []byte, offset uint64) []byte {
	if offset >= uint64(len(table)) {
		return nil
	}
	rest := table[offset:]
	if len(rest) > maxNameBytes {
		rest = rest[:maxNameBytes]
	}
	end := bytes.IndexByte(rest, 0)
	if end < 0 {
		return nil
	}
	return rest[:end]
}

// maxFoundNames bounds the bytes of the names that one search finds.
const maxFoundNames = 4 << 20

// newNames bounds what is kept of names.
func newNames() *bounded.Work { return bounded.NewWork("keeping names", maxFoundNames) }
