// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/cilium/ebpf/btf"
)

// The type format is described in the kernel's Documentation/bpf/btf.rst.
const (
	typesMagic      = 0xeB9F
	typesHeaderSize = 24
	typeHeaderSize  = 12
	memberSize      = 12
	kindStruct      = 4
	kindUnion       = 5
	kindFunction    = 12
)

// sizes are those of a type: fixed bytes, its header included, and bytes per element of
// vlen. The index is the kind; of kinds that nobody here knows, fixed is 0.
var sizes = [32]struct{ fixed, perElement uint8 }{
	1: {16, 0}, 14: {16, 0}, 17: {16, 0}, // int, var, declaration tag
	3:          {24, 0},                                                   // array
	kindStruct: {12, 12}, kindUnion: {12, 12}, 15: {12, 12}, 19: {12, 12}, // data section, 64-bit enum
	6: {12, 8}, 13: {12, 8}, // enum, function prototype
	// pointer, forward, typedef, qualifiers, function, float, type tag
	2: {12, 0}, 7: {12, 0}, 8: {12, 0}, 9: {12, 0}, 10: {12, 0}, 11: {12, 0}, kindFunction: {12, 0}, 16: {12, 0}, 18: {12, 0},
}

var errUnknownTypes = errors.New("unknown format of kernel type information")

// findOffsets gives the members of the wanted structs the offsets that raw,
// the kernel's type information, has for them. A struct that the kernel does
// not have stays unfound; a member that its struct has neither directly nor in
// an anonymous member is an error, since only a full reading looks deeper, or is taken out if it
// is optional.
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
	inside := make(anonymousMembers)
	if err := eachType(types, 1<<kindStruct, func(t rawType) {
		s := byName[t.name]
		if s == nil || s.found || len(t.members) == 0 {
			return
		}
		s.found = true
		s.local.Size = t.size
		inside.takeOffsets(s, names, t)
	}); err != nil {
		return err
	}
	if len(inside) > 0 {
		if err := inside.find(types, names); err != nil {
			return err
		}
	}
	return inside.takeOut()
}

// findTypes returns the numbers of the first types of that kind and those names in raw,
// the kernel's type information. Names that it does not have are absent.
func findTypes(raw []byte, kind uint32, wanted ...string) (map[string]uint32, error) {
	types, names, err := splitTypes(raw)
	if err != nil {
		return nil, err
	}
	byName, found := make(map[uint32]string), make(map[string]uint32)
	for _, name := range wanted {
		if at := bytes.Index(names, []byte("\x00"+name+"\x00")); at >= 0 {
			byName[uint32(at+1)] = name
		}
	}
	err = eachType(types, 1<<kind, func(t rawType) {
		if name, known := byName[t.name]; known && found[name] == 0 {
			found[name] = t.number
		}
	})
	return found, err
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

// rawType is one type of the kernel's.
type rawType struct {
	number   uint32 // by which others refer to it
	name     uint32 // where it lies among the names
	size     uint32 // of structs, in bytes
	kindFlag bool
	members  []byte // of structs, as they lie there
}

// eachType calls visit for every type of the kinds whose bits are set, in the order of
// their numbers.
func eachType(types []byte, kinds uint32, visit func(rawType)) error {
	for number := uint32(1); len(types) >= typeHeaderSize; number++ {
		info := binary.NativeEndian.Uint32(types[4:])
		kind := info >> 24 & 0x1f
		size := sizes[kind]
		end := int(size.fixed) + int(info&0xffff)*int(size.perElement)
		if size.fixed == 0 || end > len(types) {
			return errUnknownTypes
		}
		if kinds>>kind&1 != 0 {
			visit(rawType{
				number: number, name: binary.NativeEndian.Uint32(types), size: binary.NativeEndian.Uint32(types[8:]),
				kindFlag: info>>31 == 1, members: types[typeHeaderSize:end],
			})
		}
		types = types[end:]
	}
	return nil
}

// missingMember is one that a struct has not directly.
type missingMember struct {
	of   *wantedStruct
	name string
}

// found gives the member the kernel's offset.
func (m missingMember) found(offset btf.Bits) {
	for i := range m.of.local.Members {
		if m.of.local.Members[i].Name == m.name {
			m.of.local.Members[i].Offset = offset
		}
	}
}

// anonymousMembers are the numbers of the types that a struct's missing members
// may be in, with the offset of each such type in the struct.
type anonymousMembers map[missingMember]map[uint32]btf.Bits

// takeOffsets gives the members of s the offsets in t, and notes where those
// may be that t has not directly.
func (a anonymousMembers) takeOffsets(s *wantedStruct, names []byte, t rawType) {
	for i := range s.local.Members {
		m := &s.local.Members[i]
		offset, ok := memberOffset(m.Name, names, t.members, t.kindFlag)
		if ok {
			m.Offset = offset
			continue
		}
		in := make(map[uint32]btf.Bits)
		for members := t.members; len(members) >= memberSize; members = members[memberSize:] {
			if offset, ok := offsetOf(members, t.kindFlag); ok && binary.NativeEndian.Uint32(members) == 0 {
				in[binary.NativeEndian.Uint32(members[4:])] = offset
			}
		}
		a[missingMember{s, m.Name}] = in
	}
}

// find looks for the missing members in those types.
func (a anonymousMembers) find(types, names []byte) error {
	in := make(map[uint32][]missingMember)
	for missing, numbers := range a {
		for number := range numbers {
			in[number] = append(in[number], missing)
		}
	}
	return eachType(types, 1<<kindStruct|1<<kindUnion, func(t rawType) {
		for _, missing := range in[t.number] {
			base, wanted := a[missing][t.number]
			if offset, ok := memberOffset(missing.name, names, t.members, t.kindFlag); wanted && ok {
				missing.found(base + offset)
				delete(a, missing)
			}
		}
	})
}

// takeOut takes members that were not found out of their structs. It fails if one is not optional.
func (a anonymousMembers) takeOut() error {
	for missing := range a {
		if !slices.Contains(missing.of.optional, missing.name) {
			return fmt.Errorf("kernel struct %s has no member %s of its own", missing.of.local.Name, missing.name)
		}
		missing.of.local.Members = slices.DeleteFunc(missing.of.local.Members, func(m btf.Member) bool { return m.Name == missing.name })
	}
	return nil
}

func memberOffset(want string, names, members []byte, kindFlag bool) (btf.Bits, bool) {
	for ; len(members) >= memberSize; members = members[memberSize:] {
		at := binary.NativeEndian.Uint32(members)
		if int(at)+len(want) >= len(names) || string(names[at:int(at)+len(want)]) != want || names[int(at)+len(want)] != 0 {
			continue
		}
		return offsetOf(members, kindFlag)
	}
	return 0, false
}

// offsetOf returns the offset of the first member; false for a bit field.
func offsetOf(members []byte, kindFlag bool) (btf.Bits, bool) {
	offset := binary.NativeEndian.Uint32(members[8:])
	if kindFlag {
		if offset>>24 != 0 {
			return 0, false
		}
		offset &= 0xffffff
	}
	return btf.Bits(offset), true
}
