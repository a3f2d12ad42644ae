// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"bytes"
	"debug/elf"
	"hash/fnv"

	"github.com/attune-hpc/attune/dmlib/abi"
)

// Origin is what makes a word of an object a slot for a function: the object's
// relocation, the symbol that it names, and that one's name. Who writes a slot of
// a running process can tell by it whether the object is still there, or another
// one has taken its place.
type Origin struct {
	// Relocation is the virtual address of the entry, before the load bias is
	// added; 0: not known.
	Relocation uint64
	// Symbol and Name are how far from it the symbol and its name are, bytes.
	Symbol, Name int32
	// Print is FNV-1a (64 bits) over the relocation, the symbol, and its name
	// without the zero byte, at most [OriginName] bytes of it.
	Print uint64
	// Initial is what the word holds until the loader has relocated the object.
	Initial uint64
}

// Relocated says whether a slot that holds a value, in an object loaded at a
// bias, is one that the loader is done with: what is written into another one it
// would take for a number to add to.
func (o Origin) Relocated(value, bias uint64) bool { return bias == 0 || value != o.Initial }

// Holds says whether all that makes the slot is still there, in an object loaded at
// a bias; read fills a buffer from an address of the process. It is what DMLib asks
// (dm_origin_holds), from outside: the object may go at any time after.
func (o Origin) Holds(read func(address uint64, into []byte) error, bias uint64) bool {
	if o.Relocation == 0 {
		return true
	}
	at := bias + o.Relocation
	relocation, symbol, name := make([]byte, relaBytes), make([]byte, elf.Sym64Size), make([]byte, OriginName)
	for _, part := range []struct {
		at   uint64
		into []byte
	}{{at, relocation}, {at + uint64(int64(o.Symbol)), symbol}, {at + uint64(int64(o.Name)), name}} {
		if read(part.at, part.into) != nil {
			return false
		}
	}
	name, _, _ = bytes.Cut(name, []byte{0})
	return fingerprint(relocation, symbol, name) == o.Print
}

// fingerprint is FNV-1a (64 bits) over all parts.
func fingerprint(parts ...[]byte) uint64 {
	print := fnv.New64a()
	for _, part := range parts {
		print.Write(part)
	}
	return print.Sum64()
}

// OriginName is how many bytes of a name count at most.
const OriginName = abi.OriginName

// originOf returns the origin of the slot that a relocation fills.
func (l *linking) originOf(r relocation, symbols *symbolTable) Origin {
	entry := symbols.raw[r.symbol*elf.Sym64Size:][:elf.Sym64Size]
	name := symbols.name(symbols.entry(r.symbol))
	symbol := l.dynamic.values[elf.DT_SYMTAB] + uint64(r.symbol*elf.Sym64Size)
	text := l.dynamic.values[elf.DT_STRTAB] + uint64(symbols.entry(r.symbol).Name)
	return Origin{
		Relocation: r.address, Symbol: int32(symbol - r.address), Name: int32(text - r.address),
		Print: fingerprint(r.raw, entry, name[:min(len(name), OriginName)]), Initial: l.initial(r.fills),
	}
}

// initial is the word of the file at a virtual address; 0 where it has none.
func (l *linking) initial(address uint64) (word uint64) {
	if offset, ok := l.headers.offset(address, 8); ok {
		_ = l.structAt("slot", offset, &word) // of a file that is cut short: 0
	}
	return word
}
