// SPDX-License-Identifier: Apache-2.0

package packfile

import (
	"bytes"
	"debug/elf"
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// content of the parts that the tests pack.
const (
	program    = "\x7fELF the program"
	controller = "the controller, the controller, the controller, the controller"
)

// packed returns the bytes of a packed file with two parts.
func packed(tb testing.TB) []byte {
	tb.Helper()
	var b bytes.Buffer
	header := Header{Glue: []byte("glue"), Flags: Beside | MayMove, Machine: elf.EM_X86_64, Attune: "v1"}
	sizes, err := Write(&b, header, []Source{
		{Kind: Program, Name: "solver", Mode: 0o750, Content: strings.NewReader(program)},
		{Kind: Controller, Name: "attune", Mode: 0o755, Compress: true, Content: strings.NewReader(controller)},
	})
	if err != nil {
		tb.Fatal(err)
	}
	if sizes[Program] != int64(len(program)) || sizes[Controller] == 0 {
		tb.Errorf("the parts take %v", sizes)
	}
	return b.Bytes()
}

func read(b []byte) (*File, error) { return Read(bytes.NewReader(b), int64(len(b))) }

func TestWhatIsPackedIsRead(t *testing.T) {
	file, err := read(packed(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Verify(); err != nil {
		t.Error(err)
	}
	want := &File{Flags: Beside | MayMove, Attune: "v1", Machine: elf.EM_X86_64, Parts: []Part{
		{Kind: Program, Name: "solver", Mode: 0o750, Size: int64(len(program)), Offset: alignment, StoredSize: int64(len(program))},
		{Kind: Controller, Name: "attune", Mode: 0o755, Size: int64(len(controller)), Offset: 2 * alignment, Compressed: true},
	}}
	ignored := cmpopts.IgnoreUnexported(File{}, Part{})
	if file.Parts[1].StoredSize >= int64(len(controller)) {
		t.Errorf("%d bytes were compressed to %d", len(controller), file.Parts[1].StoredSize)
	}
	file.Parts[1].StoredSize = 0
	if diff := cmp.Diff(want, file, ignored); diff != "" {
		t.Error(diff)
	}
}

func TestContentComesOut(t *testing.T) {
	file, err := read(packed(t))
	if err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[Kind]string{Program: program, Controller: controller} {
		part, ok := file.Find(kind)
		var b strings.Builder
		if err := file.Extract(&b, part); !ok || err != nil || b.String() != want {
			t.Errorf("%v: %q, %v; want %q", kind, b.String(), err, want)
		}
	}
	if _, ok := file.Find(Library); ok {
		t.Error("a library was found that nobody packed")
	}
}

func TestCutOffIsRefused(t *testing.T) {
	whole := packed(t)
	for size := range whole {
		_, err := read(whole[:size])
		if !errors.Is(err, ErrNotPacked) && !errors.Is(err, ErrDamaged) {
			t.Fatalf("%d bytes of %d: %v", size, len(whole), err)
		}
	}
}

// Every byte is part of a checksum, or zero between parts and part of one too.
func TestEachChangedByteIsFound(t *testing.T) {
	whole := packed(t)
	for at := range whole {
		whole[at] ^= 0x10
		file, err := read(whole)
		if err == nil {
			err = file.Verify()
		}
		inMagic := at >= len(whole)-recordSize && at < len(whole)-recordSize+len(magic)
		if want := map[bool]error{false: ErrDamaged, true: ErrNotPacked}[inMagic]; !errors.Is(err, want) {
			t.Fatalf("byte %d of %d: %v, want %v", at, len(whole), err, want)
		}
		whole[at] ^= 0x10
	}
}

func TestAppendedBytesAreRefused(t *testing.T) {
	if _, err := read(append(packed(t), 0)); !errors.Is(err, ErrNotPacked) {
		t.Error(err)
	}
}

// Whoever computes the checksums can still not lead the reader outside.
func TestForgedTables(t *testing.T) {
	tests := []struct {
		name  string
		forge func(*entry)
	}{
		{"offset outside", func(e *entry) { e.Offset = 1 << 40 }},
		{"size outside", func(e *entry) { e.StoredSize = 1 << 40 }},
		{"size wraps around", func(e *entry) { e.StoredSize = -e.Offset }},
		{"unknown encoding", func(e *entry) { e.Encoding = 7 }},
		{"no name", func(e *entry) { e.Name[0] = 0 }},
		{"name without end", func(e *entry) { copy(e.Name[:], bytes.Repeat([]byte("x"), len(e.Name))) }},
		{"name with folder", func(e *entry) { copy(e.Name[:], "../x") }},
		{"name with slash", func(e *entry) { copy(e.Name[:], "a/b") }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := entry{Kind: Program, Offset: alignment, StoredSize: 1, Size: 1}
			copy(e.Name[:], "solver")
			tt.forge(&e)
			if _, err := decodeTable(encode([]entry{e}), 2*alignment); !errors.Is(err, ErrDamaged) {
				t.Error(err)
			}
		})
	}
}

func TestNames(t *testing.T) {
	for name, ok := range map[string]bool{
		"solver": true, strings.Repeat("x", maxName): true,
		"": false, ".": false, "..": false, ".x": false, "a/b": false, "a\x00b": false, strings.Repeat("x", maxName+1): false,
	} {
		_, err := Write(&bytes.Buffer{}, Header{}, []Source{{Kind: Program, Name: name, Content: strings.NewReader("")}})
		if (err == nil) != ok {
			t.Errorf("%q: %v, want ok %v", name, err, ok)
		}
	}
}

func TestModeIsPermissionsOnly(t *testing.T) {
	var b bytes.Buffer
	_, err := Write(&b, Header{}, []Source{{Kind: Program, Name: "x", Mode: fs.ModeSetuid | 0o755, Content: strings.NewReader("")}})
	if err != nil {
		t.Fatal(err)
	}
	file, err := read(b.Bytes())
	if err != nil || file.Parts[0].Mode != 0o755 {
		t.Errorf("%v, %v", file.Parts[0].Mode, err)
	}
}

// FuzzRead: whatever is read does not lead outside the file.
func FuzzRead(f *testing.F) {
	whole := packed(f)
	f.Add(whole)
	f.Add(whole[len(whole)-recordSize:])
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := read(b)
		if err != nil {
			return
		}
		for _, p := range file.Parts {
			if p.Offset < 0 || p.StoredSize < 0 || p.Size < 0 || p.Offset+p.StoredSize > int64(len(b)) {
				t.Errorf("part %+v of %d bytes", p, len(b))
			}
		}
	})
}
