// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"debug/elf"
	"encoding/binary"
)

// linking is what the loader finds of a file: where its parts lie, and what its
// dynamic segment says.
type linking struct {
	layout
	dynamic dynamic
}

// BindNow says whether the loader binds all of the file's imports at load
// time. Otherwise slots of R_*_JUMP_SLOT are bound by the first call.
func (l *linking) BindNow() bool { return l.dynamic.bindNow() }

// SOName is the name under which the object is linked (DT_SONAME), or "".
func (l *linking) SOName() string {
	name, ok := l.dynamic.values[elf.DT_SONAME]
	if !ok {
		return ""
	}
	strings := l.dynamic.strings(l.headers)
	if name >= strings.size {
		return ""
	}
	// The table of a large library has megabytes.
	content, err := l.bytes("name of the object", strings.offset+name, min(strings.size-name, maxNameBytes), maxNameBytes)
	if err != nil {
		return ""
	}
	return string(text(content, 0))
}

// dynamic is what the dynamic segment says, which is what the loader goes by.
type dynamic struct {
	values map[elf.DynTag]uint64
	needed []uint64
}

func readDynamic(r reader, h *headers) (dynamic, error) {
	p, ok := h.program(elf.PT_DYNAMIC)
	if !ok {
		return dynamic{}, nil
	}
	data, err := r.bytes("dynamic segment", p.Off, p.Filesz, maxDynamicBytes)
	if err != nil {
		return dynamic{}, err
	}
	d := dynamic{values: make(map[elf.DynTag]uint64)}
	for ; len(data) >= 16; data = data[16:] {
		tag := elf.DynTag(int64(binary.LittleEndian.Uint64(data)))
		value := binary.LittleEndian.Uint64(data[8:])
		switch tag {
		case elf.DT_NULL:
			return d, nil
		case elf.DT_NEEDED:
			d.needed = append(d.needed, value)
		default:
			d.values[tag] = value
		}
	}
	return d, nil
}

// bindNow says whether all of the object's symbols are bound when it is
// loaded.
func (d dynamic) bindNow() bool {
	_, tag := d.values[elf.DT_BIND_NOW]
	return tag || elf.DynFlag(d.values[elf.DT_FLAGS])&elf.DF_BIND_NOW != 0 ||
		elf.DynFlag1(d.values[elf.DT_FLAGS_1])&elf.DF_1_NOW != 0
}

// pie says whether the object calls itself a position-independent program.
func (d dynamic) pie() bool {
	return elf.DynFlag1(d.values[elf.DT_FLAGS_1])&elf.DF_1_PIE != 0
}

// table finds a table that one tag places and another one measures.
func (d dynamic) table(h *headers, place, size elf.DynTag) table {
	length := d.values[size]
	offset, ok := h.offset(d.values[place], length)
	if !ok || length == 0 {
		return table{}
	}
	return table{offset, length}
}

// strings finds the dynamic string table.
func (d dynamic) strings(h *headers) table { return d.table(h, elf.DT_STRTAB, elf.DT_STRSZ) }

// symbols finds the dynamic symbol table. The dynamic segment does not say
// how long it is: a section header does, else the hash tables.
func (d dynamic) symbols(r reader, h *headers) table {
	offset, ok := h.offset(d.values[elf.DT_SYMTAB], elf.Sym64Size)
	if !ok {
		return table{}
	}
	if s, ok := h.section(elf.SHT_DYNSYM); ok && s.Off == offset {
		return table{offset, s.Size}
	}
	return table{offset, uint64(d.countSymbols(r, h)) * elf.Sym64Size}
}

// countSymbols counts by DT_HASH or DT_GNU_HASH; 0 if neither can be read.
func (d dynamic) countSymbols(r reader, h *headers) uint32 {
	if offset, ok := h.offset(d.values[elf.DT_HASH], 8); ok && d.values[elf.DT_HASH] != 0 {
		var counts [2]uint32 // buckets, chains; there is one chain per symbol
		if r.structAt("hash table", offset, &counts) == nil {
			return counts[1]
		}
	}
	return d.countByGNUHash(r, h)
}

// gnuHash is the head of DT_GNU_HASH: a Bloom filter of 8-byte words, then the
// buckets, then one word per symbol from First on, whose lowest bit ends a
// bucket's chain.
type gnuHash struct{ Buckets, First, FilterWords, Shift uint32 }

func (d dynamic) countByGNUHash(r reader, h *headers) uint32 {
	offset, ok := h.offset(d.values[elf.DT_GNU_HASH], 16)
	var head gnuHash
	if !ok || d.values[elf.DT_GNU_HASH] == 0 || r.structAt("hash table", offset, &head) != nil {
		return 0
	}
	buckets := offset + 16 + 8*uint64(head.FilterWords)
	data, err := r.bytes("hash buckets", buckets, 4*uint64(head.Buckets), maxTableBytes)
	if err != nil {
		return 0
	}
	last := uint32(0)
	for ; len(data) >= 4; data = data[4:] {
		last = max(last, binary.LittleEndian.Uint32(data))
	}
	if last < head.First {
		return head.First // no symbol is defined; the undefined ones come first
	}
	length := r.chainLength(buckets + 4*uint64(head.Buckets) + 4*uint64(last-head.First))
	if length == 0 {
		return 0
	}
	return last + length
}

// maxChain is how many symbols of one bucket are looked at: a linker makes about as many
// buckets as symbols.
const maxChain = 1 << 16

// chainLength counts the symbols of a bucket whose chain begins at an offset; 0: it has
// no end.
func (r reader) chainLength(offset uint64) (count uint32) {
	if offset >= r.size {
		return 0
	}
	data, err := r.bytes("hash chain", offset, min(4*maxChain, (r.size-offset)&^3), 4*maxChain)
	if err != nil {
		return 0
	}
	for ; len(data) >= 4; data = data[4:] {
		count++
		if binary.LittleEndian.Uint32(data)&1 != 0 {
			return count
		}
	}
	return 0
}
