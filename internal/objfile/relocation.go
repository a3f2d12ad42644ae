// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"debug/elf"
	"encoding/binary"
	"iter"
)

// relocation is what the loader does to one word of an object.
type relocation struct {
	raw     []byte // as the file has it
	address uint64 // virtual address of the relocation itself
	fills   uint64 // virtual address of the word
	kind    uint32 // as the machine numbers them
	symbol  int    // index in the dynamic symbol table
	addend  uint64
}

// relaBytes is the size of one relocation: offset, info, addend.
const relaBytes = 24

// relocations are those of .rela.plt and .rela.dyn, which the dynamic segment tells. An
// error is the last.
func (l *linking) relocations() iter.Seq2[relocation, error] {
	tables := [][2]elf.DynTag{{elf.DT_JMPREL, elf.DT_PLTRELSZ}, {elf.DT_RELA, elf.DT_RELASZ}}
	if elf.DynTag(l.dynamic.values[elf.DT_PLTREL]) != elf.DT_RELA {
		tables = tables[1:]
	}
	return func(yield func(relocation, error) bool) {
		for _, tags := range tables {
			data, err := l.load("relocations", l.dynamic.table(l.headers, tags[0], tags[1]))
			if err != nil {
				yield(relocation{}, err)
				return
			}
			for at := l.dynamic.values[tags[0]]; len(data) >= relaBytes; data, at = data[relaBytes:], at+relaBytes {
				info := binary.LittleEndian.Uint64(data[8:])
				r := relocation{
					raw: data[:relaBytes], address: at, fills: binary.LittleEndian.Uint64(data),
					kind: uint32(info), symbol: int(info >> 32), addend: binary.LittleEndian.Uint64(data[16:]),
				}
				if !yield(r, nil) {
					return
				}
			}
		}
	}
}
