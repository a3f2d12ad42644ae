// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
)

// goSymbols makes a symbol table of .gopclntab, which every Go program needs
// to unwind its stacks and which strip(1) therefore leaves: all functions, by
// name. Not debug/gosym: it allocates for as many functions as a file claims.
//
// Layout since Go 1.18 (internal/abi and runtime/symtab.go): a head of 8 bytes
// and eight words, the names, and at pclnOffset pairs of 4 bytes: the offset
// of a function from the start of the text, and of its description from
// pclnOffset, whose second word is the offset of its name. Older programs are
// not read.
func (in *symbols) goSymbols() (*symbolTable, error) {
	data, err := in.goTable()
	if err != nil {
		return nil, err
	}
	head, err := readGoHead(data)
	if err != nil {
		return nil, err
	}
	text, err := in.goText(data, head)
	if err != nil {
		return nil, err
	}
	t := &symbolTable{names: data[head.names:]}
	for i := range head.count {
		start, name, ok := head.function(data, i)
		next, _, _ := head.function(data, i+1) // the last one is the end
		if !ok || next < start {
			continue
		}
		t.raw = appendSymbol(t.raw, name, text+uint64(start), uint64(next-start))
	}
	return t, nil
}

// goTable reads .gopclntab, which position-independent programs have under
// another name.
func (l *layout) goTable() ([]byte, error) {
	for _, name := range []string{".gopclntab", ".data.rel.ro.gopclntab"} {
		if l.HasSection(name) {
			return l.Section(name, maxTableBytes)
		}
	}
	return nil, fmt.Errorf("%w: .gopclntab in %s", ErrNoSection, l.name)
}

// goHead is where things are in .gopclntab.
type goHead struct {
	count, names, functions uint64
	text                    uint64 // 0: not told
}

const (
	goPairBytes = 8
	goHeadBytes = 8 + 8*8
)

func readGoHead(data []byte) (h goHead, err error) {
	if len(data) < goHeadBytes {
		return h, fmt.Errorf("%w: .gopclntab ends in its head", ErrCorrupt)
	}
	switch magic := binary.LittleEndian.Uint32(data); {
	case magic != 0xfffffff0 && magic != 0xfffffff1: // Go 1.18, 1.20
		return h, fmt.Errorf("%w: .gopclntab of kind %#x", ErrUnsupported, magic)
	case data[7] != 8:
		return h, fmt.Errorf("%w: .gopclntab with pointers of %d bytes", ErrUnsupported, data[7])
	}
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(data[8+8*i:]) }
	h = goHead{count: word(0), text: word(2), names: word(3), functions: word(7)}
	size := uint64(len(data))
	if h.names > size || h.functions > size || h.count >= (size-h.functions)/goPairBytes {
		return h, fmt.Errorf("%w: .gopclntab points beyond its end", ErrCorrupt)
	}
	return h, nil
}

// function reads the i-th pair, count being the end: the function's offset from
// the start of the text and that of its name.
func (h goHead) function(data []byte, i uint64) (start, name uint32, ok bool) {
	pair := data[h.functions+i*goPairBytes:]
	start = binary.LittleEndian.Uint32(pair)
	if i == h.count {
		return start, 0, true
	}
	at := h.functions + uint64(binary.LittleEndian.Uint32(pair[4:]))
	if at+8 > uint64(len(data)) {
		return 0, 0, false
	}
	return start, binary.LittleEndian.Uint32(data[at+4:]), true
}

// goText is the address of the text that offsets count from. Programs of Go 1.26
// and position-independent ones do not say it in the table.
func (l *layout) goText(data []byte, head goHead) (uint64, error) {
	if head.text != 0 {
		return head.text, nil
	}
	if text, ok := l.goModuleText(); ok {
		return text, nil
	}
	return l.goEntryText(data, head)
}

const (
	// goModuleTextOffset is where the runtime's moduledata has the text's address:
	// behind a pointer to the table, six slices and three addresses.
	goModuleTextOffset = 8 + 6*24 + 3*8
	// maxGoModule is many times what a moduledata takes, in bytes.
	maxGoModule = 1 << 16
)

// goModuleText is the text's address in the module's description, which has a
// section of its own since Go 1.26.
func (l *layout) goModuleText() (uint64, bool) {
	module, err := l.Section(".go.module", maxGoModule)
	table, _, ok := l.SectionAddress(".gopclntab")
	if err != nil || !ok || len(module) < goModuleTextOffset+8 || binary.LittleEndian.Uint64(module) != table {
		return 0, false
	}
	text := binary.LittleEndian.Uint64(module[goModuleTextOffset:])
	return text, l.headers.isCode(text)
}

// goEntryText tells the text's address by the entry point of the file: as a rule a
// function that the table has. It is another one in a program that a C compiler
// linked, or whose builder named another (-E): the text then seems to start
// elsewhere than the section, where Go's own linker puts it.
func (l *layout) goEntryText(data []byte, head goHead) (uint64, error) {
	section, _, _ := l.SectionAddress(".text")
	for i := range head.count {
		start, name, ok := head.function(data, i)
		if !ok {
			continue
		}
		if string(text(data[head.names:], uint64(name))) == "_rt0_amd64_linux" {
			if l.headers.file.Entry-uint64(start) == section && l.headers.isCode(section) {
				return section, nil
			}
			return 0, fmt.Errorf("%w: the program does not start with Go code: a C compiler linked it, or it has an entry point of its own", ErrUnsupported)
		}
	}
	return 0, fmt.Errorf("%w: .gopclntab without the start of the text", ErrUnsupported)
}

// appendSymbol writes a function as a symbol table of ELF has it.
func appendSymbol(raw []byte, name uint32, value, size uint64) []byte {
	raw = binary.LittleEndian.AppendUint32(raw, name)
	raw = append(raw, elf.ST_INFO(elf.STB_GLOBAL, elf.STT_FUNC), 0)
	raw = binary.LittleEndian.AppendUint16(raw, 1) // some section
	raw = binary.LittleEndian.AppendUint64(raw, value)
	return binary.LittleEndian.AppendUint64(raw, size)
}
