// SPDX-License-Identifier: Apache-2.0

package packfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// Errors of reading.
var (
	// ErrNotPacked says that a file does not end with a record: it was never
	// packed, or is cut off.
	ErrNotPacked = errors.New("no packed program, or cut off")
	// ErrDamaged says that a file is not as it was packed.
	ErrDamaged = errors.New("damaged")
)

// The format, as glue/format.h has it.
const (
	magic      = "ATTUNEPK"
	version    = 1
	recordSize = 128
	partSize   = 128
	maxParts   = 64
	// alignment of parts: a page, which a program may be mapped from.
	alignment = 4096

	maxVersion = 55 // and a NUL
	maxName    = 79
)

// Flags say how the program is started.
type Flags uint32

// The flags.
const (
	// NoPreload: the program's loader does not take DMLib.
	NoPreload Flags = 1 << iota
	// Beside: the program is unpacked into the folder of the packed file.
	Beside
	// Quiet: nobody is told the report on standard error.
	Quiet
	// MayMove: with Beside, elsewhere if that folder is read-only.
	MayMove
)

// Kind says what a part is.
type Kind uint32

// The kinds. There is one program, one controller, and at most one each of
// library, config, headers and descriptions.
const (
	Program Kind = 1 + iota
	Controller
	Tunlet
	Library
	Config
	// Headers are those of memory files that processes make (controller/shm).
	Headers
	// TunletLink is another name of a tunlet's file: its content is that file's.
	TunletLink
	// Descriptions are what the tunlets say of themselves.
	Descriptions
)

// String returns the kind in a word.
func (k Kind) String() string {
	names := [...]string{
		Program: "program", Controller: "controller", Tunlet: "tunlet", Library: "library", Config: "config",
		Headers: "headers", TunletLink: "link", Descriptions: "descriptions",
	}
	if k < Program || int(k) >= len(names) {
		return fmt.Sprintf("kind %d", uint32(k))
	}
	return names[k]
}

type encoding uint32

const (
	stored encoding = iota
	zstandard
)

// record is the end of the file.
type record struct {
	Magic       [8]byte
	Version     uint32
	RecordSize  uint32
	FileSize    uint64
	TableOffset uint64
	PartCount   uint32
	PartSize    uint32
	ContentHash uint64 // of all bytes before the record
	Flags       Flags
	Machine     uint32
	Attune      [maxVersion + 1]byte
	TableHash   uint64
	RecordHash  uint64 // of the record up to here
}

// entry is one part in the table.
type entry struct {
	Kind       Kind
	Encoding   encoding
	Offset     uint64
	StoredSize uint64
	Size       uint64
	Hash       uint64 // of the decoded bytes
	Mode       uint32
	_          uint32
	Name       [maxName + 1]byte
}

// encode returns the bytes of a record or a table.
func encode(value any) []byte {
	var b bytes.Buffer
	if err := binary.Write(&b, binary.LittleEndian, value); err != nil {
		panic(err) // all sizes are fixed
	}
	return b.Bytes()
}

// seal fills in the record's own checksum.
func (r *record) seal() []byte {
	r.RecordHash = 0
	b := encode(r)
	r.RecordHash = xxhash.Sum64(b[:recordSize-8])
	binary.LittleEndian.PutUint64(b[recordSize-8:], r.RecordHash)
	return b
}

// decodeRecord reads the record of a file of that size.
func decodeRecord(b []byte, size int64) (record, error) {
	var r record
	if len(b) != recordSize || string(b[:len(magic)]) != magic {
		return r, ErrNotPacked
	}
	if err := binary.Read(bytes.NewReader(b), binary.LittleEndian, &r); err != nil {
		return r, err
	}
	limit := uint64(size) - recordSize
	table := uint64(r.PartCount) * partSize
	switch {
	case xxhash.Sum64(b[:recordSize-8]) != r.RecordHash:
		return r, fmt.Errorf("%w: its record does not fit its checksum", ErrDamaged)
	case r.Version != version || r.RecordSize != recordSize || r.PartSize != partSize:
		return r, fmt.Errorf("packed in format %d, want %d: pack it anew", r.Version, version)
	case r.FileSize != uint64(size):
		return r, fmt.Errorf("%w: it has %d bytes of %d", ErrDamaged, size, r.FileSize)
	case r.PartCount == 0 || r.PartCount > maxParts || r.TableOffset > limit || table > limit-r.TableOffset:
		return r, fmt.Errorf("%w: its table lies outside", ErrDamaged)
	}
	return r, nil
}

// decodeTable reads the parts of a file; limit is where its record begins.
func decodeTable(b []byte, limit uint64) ([]Part, error) {
	entries := make([]entry, len(b)/partSize)
	if err := binary.Read(bytes.NewReader(b), binary.LittleEndian, entries); err != nil {
		return nil, err
	}
	parts := make([]Part, len(entries))
	for i, e := range entries {
		name, _, ended := bytes.Cut(e.Name[:], []byte{0})
		inside := e.Offset <= limit && e.StoredSize <= limit-e.Offset && e.Size <= math.MaxInt64
		if !ended || !inside || checkName(string(name)) != nil || e.Encoding > zstandard {
			return nil, fmt.Errorf("%w: part %d makes no sense", ErrDamaged, i)
		}
		parts[i] = Part{
			Kind: e.Kind, Name: string(name), Mode: fs.FileMode(e.Mode) & fs.ModePerm,
			Size: int64(e.Size), Offset: int64(e.Offset), StoredSize: int64(e.StoredSize),
			Compressed: e.Encoding == zstandard, hash: e.Hash,
		}
	}
	return parts, nil
}

// checkName refuses what cannot be a file in a folder.
func checkName(name string) error {
	if name == "" || name[0] == '.' || len(name) > maxName || strings.ContainsAny(name, "/\x00") {
		return fmt.Errorf("%q cannot be the name of a part: 1 to %d bytes, no slash, no leading dot", name, maxName)
	}
	return nil
}
