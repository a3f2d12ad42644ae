// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"fmt"
)

// layout is what lies where in a file by its headers.
type layout struct {
	reader
	headers *headers
	name    string // for people, and to find what lies beside it
}

func readLayout(name string, r reader) (layout, error) {
	headers, err := readHeaders(r)
	return layout{reader: r, headers: headers, name: name}, err
}

// Machine is the processor architecture of the file.
func (l *layout) Machine() elf.Machine { return elf.Machine(l.headers.file.Machine) }

// Type is ET_EXEC for a program at fixed addresses, ET_DYN for a
// position-independent program or a library.
func (l *layout) Type() elf.Type { return elf.Type(l.headers.file.Type) }

// Interpreter is the dynamic loader that the file asks for (PT_INTERP), ""
// for static programs and most libraries.
func (l *layout) Interpreter() (string, error) {
	p, ok := l.headers.program(elf.PT_INTERP)
	if !ok {
		return "", nil
	}
	data, err := l.bytes("interpreter", p.Off, p.Filesz, maxNameBytes)
	if err != nil {
		return "", err
	}
	if end := bytes.IndexByte(data, 0); end >= 0 {
		return string(data[:end]), nil
	}
	return "", fmt.Errorf("%w: interpreter without end", ErrCorrupt)
}

// table is a range of the file; one with no size is absent.
type table struct{ offset, size uint64 }

// load reads a table whole.
func (l *layout) load(what string, t table) ([]byte, error) {
	return l.bytes(what, t.offset, t.size, maxTableBytes)
}

// BuildID is the GNU build id in hexadecimal, "" if the file has none.
func (l *layout) BuildID() string {
	for _, p := range l.headers.programs {
		if elf.ProgType(p.Type) != elf.PT_NOTE {
			continue
		}
		data, err := l.bytes("notes", p.Off, p.Filesz, maxNoteBytes)
		if err != nil {
			continue
		}
		if id := buildID(data, p.Align); id != "" {
			return id
		}
	}
	return ""
}

// buildID looks through notes: name size, content size, type, name, content,
// the latter two padded to 4 bytes, or 8 in segments aligned so.
func buildID(notes []byte, align uint64) string {
	const head, gnuBuildID = 12, 3
	if align != 8 {
		align = 4
	}
	pad := func(n uint32) uint64 { return (uint64(n) + align - 1) &^ (align - 1) }
	for len(notes) >= head {
		name, content := binary.LittleEndian.Uint32(notes), binary.LittleEndian.Uint32(notes[4:])
		kind := binary.LittleEndian.Uint32(notes[8:])
		start := (head + uint64(name) + align - 1) &^ (align - 1)
		end := start + uint64(content)
		if end > uint64(len(notes)) {
			return ""
		}
		if kind == gnuBuildID && string(notes[head:head+min(uint64(name), uint64(len(notes)-head))]) == "GNU\x00" {
			return hex.EncodeToString(notes[start:end])
		}
		notes = notes[min(start+pad(content), uint64(len(notes))):]
	}
	return ""
}
