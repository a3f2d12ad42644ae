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
)

func (l *linking) readVersions(names []byte, count int) *versions {
	offset, ok := l.headers.offset(l.dynamic.values[elf.DT_VERSYM], uint64(2*count))
	if !ok || l.dynamic.values[elf.DT_VERSYM] == 0 {
		return nil
	}
	indexes, err := l.bytes("symbol versions", offset, uint64(2*count), maxTableBytes)
	if err != nil {
		return nil
	}
	return &versions{indexes, l.versionNames(names)}
}

// versionNames reads the versions that the file defines (DT_VERDEF) and those
// that it needs of others (DT_VERNEED), which the copies of variables of
// libraries have that stand in programs. Both are lists linked by relative
// offsets. Each walk ends after maxVersions entries, so a list that runs in
// circles does no harm.
func (l *linking) versionNames(names []byte) map[uint16]string {
	found := make(map[uint16]string)
	l.walk(elf.DT_VERDEF, func(at uint64, entry [20]byte) uint32 {
		var name uint32
		first := binary.LittleEndian.Uint32(entry[12:])
		if l.structAt("version name", at+uint64(first), &name) == nil {
			index := binary.LittleEndian.Uint16(entry[4:])
			found[index&^hiddenVersion] = string(text(names, uint64(name)))
		}
		return binary.LittleEndian.Uint32(entry[16:])
	})
	l.walk(elf.DT_VERNEED, func(at uint64, entry [20]byte) uint32 {
		l.neededVersions(at+uint64(binary.LittleEndian.Uint32(entry[8:])), names, found)
		return binary.LittleEndian.Uint32(entry[12:])
	})
	return found
}

// neededVersions reads the versions needed of one library.
func (l *linking) neededVersions(at uint64, names []byte, found map[uint16]string) {
	for len(found) < maxVersions {
		var need struct {
			Hash         uint32
			Flags, Index uint16
			Name, Next   uint32
		}
		if l.structAt("needed version", at, &need) != nil {
			return
		}
		if _, again := found[need.Index&^hiddenVersion]; again {
			return
		}
		found[need.Index&^hiddenVersion] = string(text(names, uint64(need.Name)))
		if at += uint64(need.Next); need.Next == 0 {
			return
		}
	}
}

// walk visits the entries of a list; visit returns the offset of the next
// from this one, 0 at the end. The last entry of a list may be shorter than
// what is read of it, as long as the file goes on.
func (l *linking) walk(tag elf.DynTag, visit func(at uint64, entry [20]byte) uint32) {
	at, ok := l.headers.offset(l.dynamic.values[tag], 16)
	if !ok || l.dynamic.values[tag] == 0 {
		return
	}
	for range maxVersions {
		var entry [20]byte
		if l.structAt("version entry", at, &entry) != nil {
			return
		}
		next := visit(at, entry)
		if next == 0 {
			return
		}
		at += uint64(next)
	}
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
