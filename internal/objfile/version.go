// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"debug/elf"
	"encoding/binary"
)

// versions gives the version of each dynamic symbol (GNU symbol versioning).
// A nil *versions is a file without.
type versions struct {
	indexes []byte // two bytes per symbol
	names   map[uint16]string
}

const (
	hiddenVersion = 0x8000 // not the default one
	maxVersions   = 4096
	verdefBytes   = 20
)

func (f *File) readVersions(names []byte, count int) *versions {
	offset, ok := f.headers.offset(f.dynamic.values[elf.DT_VERSYM], uint64(2*count))
	if !ok || f.dynamic.values[elf.DT_VERSYM] == 0 {
		return nil
	}
	indexes, err := f.bytes("symbol versions", offset, uint64(2*count), maxTableBytes)
	if err != nil {
		return nil
	}
	return &versions{indexes, f.versionNames(names)}
}

// versionNames reads the versions that the file defines (DT_VERDEF), a list
// linked by relative offsets. The walk ends after maxVersions entries, so a
// list that runs in circles does no harm.
func (f *File) versionNames(names []byte) map[uint16]string {
	found := make(map[uint16]string)
	offset, ok := f.headers.offset(f.dynamic.values[elf.DT_VERDEF], verdefBytes)
	if !ok || f.dynamic.values[elf.DT_VERDEF] == 0 {
		return found
	}
	for range min(f.dynamic.values[elf.DT_VERDEFNUM], maxVersions) {
		data, err := f.bytes("version definition", offset, verdefBytes, verdefBytes)
		if err != nil {
			break
		}
		index := binary.LittleEndian.Uint16(data[4:])
		first, next := binary.LittleEndian.Uint32(data[12:]), binary.LittleEndian.Uint32(data[16:])
		var name uint32
		if f.structAt("version name", offset+uint64(first), &name) != nil {
			break
		}
		found[index&^hiddenVersion] = string(text(names, uint64(name)))
		if next == 0 {
			break
		}
		offset += uint64(next)
	}
	return found
}

// of returns the version of a symbol, and whether it is the default.
func (v *versions) of(symbol int) (version string, standard bool) {
	if v == nil || 2*symbol+2 > len(v.indexes) {
		return "", true
	}
	index := binary.LittleEndian.Uint16(v.indexes[2*symbol:])
	// Index 0 is local, 1 the base version; neither has a name.
	if index&^hiddenVersion > 1 {
		version = v.names[index&^hiddenVersion]
	}
	return version, index&hiddenVersion == 0
}
