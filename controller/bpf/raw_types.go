// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cilium/ebpf/btf"
)

// The type format is described in the kernel's Documentation/bpf/btf.rst.
const (
	typesMagic      = 0xeB9F
	typesHeaderSize = 24
	typeHeaderSize  = 12
	memberSize      = 12
	kindStruct      = 4
)

// trailerSize is what follows the 12-byte header of a type: fixed bytes, and
// bytes per element of vlen. The index is the kind.
func trailerSize(kind uint32) (fixed, perElement int, ok bool) {
	switch kind {
	case 1, 14, 17: // int, var, declaration tag
		return 4, 0, true
	case 3: // array
		return 12, 0, true
	case kindStruct, 5, 15, 19: // struct, union, data section, 64-bit enum
		return 0, 12, true
	case 6, 13: // enum, function prototype
		return 0, 8, true
	case 2, 7, 8, 9, 10, 11, 12, 16, 18: // pointer, forward, typedef, qualifiers, function, float, type tag
		return 0, 0, true
	}
	return 0, 0, false
}

var errUnknownTypes = errors.New("unknown format of kernel type information")

// findOffsets gives the members of the wanted structs the offsets that raw,
// the kernel's type information, has for them. A struct that the kernel does
// not have stays unfound; a member that its struct does not have directly is
// an error, since only a full reading looks into anonymous members.
func findOffsets(raw []byte, wanted map[string]*wantedStruct) error {
	types, names, err := splitTypes(raw)
	if err != nil {
		return err
	}
	byName := make(map[uint32]*wantedStruct, len(wanted))
	for name, s := range wanted {
		if at := bytes.Index(names, []byte("\x00"+name+"\x00")); at >= 0 {
			byName[uint32(at+1)] = s
		}
	}
	return eachStruct(types, func(name uint32, size int, kindFlag bool, members []byte) error {
		s := byName[name]
		if s == nil || s.found || len(members) == 0 {
			return nil
		}
		s.found = true
		s.local.Size = uint32(size)
		return takeOffsets(s.local, names, members, kindFlag)
	})
}

func splitTypes(raw []byte) (types, names []byte, err error) {
	if len(raw) < typesHeaderSize || binary.NativeEndian.Uint16(raw) != typesMagic {
		return nil, nil, errUnknownTypes
	}
	word := func(i int) uint64 { return uint64(binary.NativeEndian.Uint32(raw[i:])) }
	body := word(4)
	typesAt, typesEnd := body+word(8), body+word(8)+word(12)
	namesAt, namesEnd := body+word(16), body+word(16)+word(20)
	if max(typesEnd, namesEnd) > uint64(len(raw)) {
		return nil, nil, errUnknownTypes
	}
	return raw[typesAt:typesEnd], raw[namesAt:namesEnd], nil
}

// eachStruct calls visit for every struct with its name's offset, its size and
// its members as they lie in types.
func eachStruct(types []byte, visit func(name uint32, size int, kindFlag bool, members []byte) error) error {
	for len(types) >= typeHeaderSize {
		name := binary.NativeEndian.Uint32(types)
		info := binary.NativeEndian.Uint32(types[4:])
		size := binary.NativeEndian.Uint32(types[8:])
		kind, vlen := info>>24&0x1f, int(info&0xffff)
		fixed, perElement, ok := trailerSize(kind)
		end := typeHeaderSize + fixed + vlen*perElement
		if !ok || end > len(types) {
			return errUnknownTypes
		}
		if kind == kindStruct {
			if err := visit(name, int(size), info>>31 == 1, types[typeHeaderSize:end]); err != nil {
				return err
			}
		}
		types = types[end:]
	}
	return nil
}

func takeOffsets(s *btf.Struct, names, members []byte, kindFlag bool) error {
	for i := range s.Members {
		offset, ok := memberOffset(s.Members[i].Name, names, members, kindFlag)
		if !ok {
			return fmt.Errorf("kernel struct %s has no member %s of its own", s.Name, s.Members[i].Name)
		}
		s.Members[i].Offset = offset
	}
	return nil
}

func memberOffset(want string, names, members []byte, kindFlag bool) (btf.Bits, bool) {
	for ; len(members) >= memberSize; members = members[memberSize:] {
		at := binary.NativeEndian.Uint32(members)
		if int(at)+len(want) >= len(names) || string(names[at:int(at)+len(want)]) != want || names[int(at)+len(want)] != 0 {
			continue
		}
		offset := binary.NativeEndian.Uint32(members[8:])
		if kindFlag {
			if offset>>24 != 0 {
				return 0, false // a bit field
			}
			offset &= 0xffffff
		}
		return btf.Bits(offset), true
	}
	return 0, false
}
