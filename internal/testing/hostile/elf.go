// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"bytes"
	"compress/zlib"
	"debug/elf"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// Section is one of an object file.
type Section struct {
	Name    string
	Type    elf.SectionType
	Flags   elf.SectionFlag
	Content []byte
	// Claim is the size that its header says; 0: the right one.
	Claim uint64
	// Link is the number of another section, the first one being 1.
	Link uint32
}

// Text is where the one executable segment begins, which is the whole file.
const Text = 0x400000

// ELF is an x86-64 program of these sections, .shstrtab behind them.
func ELF(sections ...Section) []byte {
	const headers = 64 + 56
	names, body := []byte{0}, []byte(nil)
	table := []elf.Section64{{}}
	for _, s := range append(sections, Section{Name: ".shstrtab", Type: elf.SHT_STRTAB}) {
		header := elf.Section64{Name: uint32(len(names)), Type: uint32(s.Type), Flags: uint64(s.Flags), Off: headers + uint64(len(body)), Link: s.Link}
		names = append(append(names, s.Name...), 0)
		if s.Name == ".shstrtab" {
			s.Content = names
		}
		body = append(body, s.Content...)
		header.Size = uint64(len(s.Content))
		if s.Claim != 0 {
			header.Size = s.Claim
		}
		table = append(table, header)
	}
	var out bytes.Buffer
	head := elf.Header64{
		Ident: [16]byte{0x7f, 'E', 'L', 'F', 2, 1, 1}, Type: uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64), Version: 1, Entry: Text,
		Phoff: 64, Shoff: headers + uint64(len(body)), Ehsize: 64, Phentsize: 56, Phnum: 1,
		Shentsize: 64, Shnum: uint16(len(table)), Shstrndx: uint16(len(table) - 1),
	}
	size := uint64(headers + len(body))
	segment := elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X), Vaddr: Text, Filesz: size, Memsz: size}
	for _, part := range []any{head, segment, body, table} {
		_ = binary.Write(&out, binary.LittleEndian, part) // into memory, of fixed sizes
	}
	return out.Bytes()
}

// Write writes a file for as long as the test runs.
func Write(t testing.TB, content []byte) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "hostile")
	if err := os.WriteFile(path, content, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// Symbols are .symtab, .strtab: a function for each offset in the names, all at the same
// address if same is set. They are to be the first two sections.
func Symbols(names []byte, same bool, offsets ...uint32) []Section {
	raw := make([]byte, elf.Sym64Size)
	for i, name := range offsets {
		address := uint64(Text)
		if !same {
			address += uint64(i)
		}
		raw = binary.LittleEndian.AppendUint32(raw, name)
		raw = append(raw, elf.ST_INFO(elf.STB_GLOBAL, elf.STT_FUNC), 0)
		raw = binary.LittleEndian.AppendUint16(raw, 1)
		raw = binary.LittleEndian.AppendUint64(raw, address)
		raw = binary.LittleEndian.AppendUint64(raw, 1)
	}
	return []Section{
		{Name: ".symtab", Type: elf.SHT_SYMTAB, Content: raw, Link: 2},
		{Name: ".strtab", Type: elf.SHT_STRTAB, Content: names},
	}
}

// Bomb is the content of an SHF_COMPRESSED section that becomes that many zeros, and
// says that it becomes claim.
func Bomb(zeros int64, claim uint64) []byte {
	var packed bytes.Buffer
	_ = binary.Write(&packed, binary.LittleEndian, elf.Chdr64{Type: uint32(elf.COMPRESS_ZLIB), Size: claim, Addralign: 1})
	z := zlib.NewWriter(&packed)
	_, _ = io.CopyN(z, nothing{}, zeros) // into memory
	_ = z.Close()
	return packed.Bytes()
}

type nothing struct{}

func (nothing) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// Frames is .eh_frame with so many entries, one behind the other, for stretches of 16 bytes of code
// from an address on. What they have in common has so many bytes of instructions that do nothing.
func Frames(common, entries int) Section {
	const codeBytes = 16
	word := func(n int) []byte { return binary.LittleEndian.AppendUint32(nil, uint32(n)) }
	// Version 1, "zR": addresses are 32 bits as they are; the frame is 8 bytes above rsp.
	shared := append([]byte("\x00\x00\x00\x00\x01zR\x00\x01\x78\x10\x01\x03\x0c\x07\x08\x90\x01"), make([]byte, common)...)
	out := append(word(len(shared)), shared...)
	for i := range entries {
		out = append(out, word(13)...)
		out = append(out, word(len(out))...)
		out = append(append(out, word(Text+i*codeBytes)...), word(codeBytes)...)
		out = append(out, 0)
	}
	return Section{Name: ".eh_frame", Type: elf.SHT_PROGBITS, Flags: elf.SHF_ALLOC, Content: append(out, word(0)...)}
}
