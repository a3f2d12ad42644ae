// SPDX-License-Identifier: Apache-2.0

package hostiletest

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/bounded"
	"github.com/attune-hpc/attune/internal/clock"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/hostile"
)

const mega = 1 << 20

func mustOpen(t testing.TB, path string) *objfile.File {
	t.Helper()
	f, err := objfile.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// offsets are so many, each that many bytes behind the one before.
func offsets(count int, step uint32) []uint32 {
	all := make([]uint32, count)
	for i := range all {
		all[i] = 1 + uint32(i)*step
	}
	return all
}

// TestHostileSizes: headers that name terabytes, and data that becomes gigabytes.
func TestHostileSizes(t *testing.T) {
	zlib := hostile.Section{Name: ".debug_info", Type: elf.SHT_PROGBITS, Flags: elf.SHF_COMPRESSED}
	for name, section := range map[string]hostile.Section{
		"claimed":           {Name: ".debug_info", Type: elf.SHT_PROGBITS, Content: []byte{1}, Claim: 1 << 40},
		"inflates":          {Name: zlib.Name, Type: zlib.Type, Flags: zlib.Flags, Content: hostile.Bomb(100*mega, 100<<30)},
		"inflates, it says": {Name: zlib.Name, Type: zlib.Type, Flags: zlib.Flags, Content: hostile.Bomb(10, 500*mega)},
	} {
		t.Run(name, func(t *testing.T) {
			file := mustOpen(t, hostile.Write(t, hostile.ELF(section)))
			hostile.Cost(t, mega, func() {
				if _, err := file.Section(".debug_info", objfile.MaxSectionBytes); err == nil {
					t.Error("no error")
				}
			})
		})
	}
}

// TestHostileMiniDebug: what .gnu_debugdata becomes is known before it is unpacked,
// and nobody unpacks it for each look-up.
func TestHostileMiniDebug(t *testing.T) {
	xz := exec.Command("xz", "-c")
	zeros, err := os.Open("/dev/zero")
	if err != nil {
		t.Fatal(err)
	}
	defer zeros.Close()
	xz.Stdin = io.LimitReader(zeros, 70*mega)
	bomb, err := xz.Output()
	if err != nil {
		t.Fatal(err)
	}
	file := mustOpen(t, hostile.Write(t, hostile.ELF(hostile.Section{Name: ".gnu_debugdata", Type: elf.SHT_PROGBITS, Content: bomb})))
	hostile.Cost(t, 4*mega, func() {
		for range 10 {
			if _, err := file.Lookup("anything", objfile.LookupOptions{}); !errors.Is(err, objfile.ErrNoSymbol) {
				t.Error(err)
			}
		}
	})
}

// TestHostileNames: names without end, of which each contains what is looked for.
func TestHostileNames(t *testing.T) {
	endless := bytes.Repeat([]byte("a"), 8*mega)
	long := bytes.Repeat([]byte("a"), 4000)
	cold := append(append([]byte{0}, long...), ".cold\x00"...)
	mangled := []byte{0}
	for len(mangled) < 4000 {
		mangled = append(mangled, "_ZN1a"...)
	}
	many := bytes.Repeat([]byte("x"), 2000)
	for name, test := range map[string]struct {
		file    []hostile.Section
		allowed uint64
		ask     func(*objfile.File) error
		err     error
	}{
		"endless": {hostile.Symbols(endless, false, offsets(1000, 1)...), 64 * mega, lookup("*aa*"), objfile.ErrNoSymbol},
		"one long name of many seldom executed parts": {
			hostile.Symbols(cold, false, offsets(200_000, 0)...), 400 * mega,
			func(f *objfile.File) error { _, err := f.Outline(); return err }, objfile.ErrUnsupported,
		},
		"many names of one address": {hostile.Symbols(append(many, 0), true, offsets(1900, 1)...), 64 * mega, lookup("x*"), nil},
		"long names that match":     {hostile.Symbols(append(long, 0), false, offsets(3000, 1)...), 64 * mega, lookup("*a*"), objfile.ErrTooManySymbols},
		"ten million symbols":       {hostile.Symbols([]byte("\x00a\x00"), false, offsets(10_000_000, 0)...), mega, lookup("a"), objfile.ErrUnsupported},
		"a version of nothing":      {hostile.Symbols([]byte("\x00@@V\x00"), false, offsets(1, 1)...), mega, lookup("*"), objfile.ErrNoSymbol},
		"names to demangle":         {hostile.Symbols(append(mangled, 0), false, offsets(500_000, 0)...), 160 * mega, lookup("a::*a::b"), objfile.ErrUnsupported},
	} {
		t.Run(name, func(t *testing.T) {
			file := mustOpen(t, hostile.Write(t, hostile.ELF(test.file...)))
			hostile.Cost(t, test.allowed, func() {
				if err := test.ask(file); !errors.Is(err, test.err) {
					t.Errorf("%v, want %v", err, test.err)
				}
			})
		})
	}
}

func lookup(query string) func(*objfile.File) error {
	return func(f *objfile.File) error {
		_, err := f.Lookup(query, objfile.LookupOptions{})
		return err
	}
}

// TestHostileHashTable: a chain that never ends, in a file that is mostly a hole.
func TestHostileHashTable(t *testing.T) {
	image := hostile.ELF()
	const hole, dynamic = 64 << 30, 4096
	// One segment that is all of the file, and one that is its dynamic segment.
	headers := []elf.Prog64{
		{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R), Vaddr: hostile.Text, Filesz: hole, Memsz: hole},
		{Type: uint32(elf.PT_DYNAMIC), Off: dynamic, Vaddr: hostile.Text + dynamic, Filesz: 64, Memsz: 64},
	}
	var content bytes.Buffer
	content.Write(image[:64])
	binary.Write(&content, binary.LittleEndian, headers)
	data := append(content.Bytes(), make([]byte, 8192-content.Len())...)
	binary.LittleEndian.PutUint64(data[40:], 0) // no sections
	binary.LittleEndian.PutUint16(data[56:], 2)
	for i, word := range []uint64{
		uint64(elf.DT_SYMTAB), hostile.Text + 6000, uint64(elf.DT_GNU_HASH), hostile.Text + 5000, uint64(elf.DT_NULL), 0,
	} {
		binary.LittleEndian.PutUint64(data[dynamic+8*i:], word)
	}
	for i, word := range []uint32{1, 1, 0, 0, 1} { // buckets, first symbol, filter, shift; the bucket's first symbol
		binary.LittleEndian.PutUint32(data[5000+4*i:], word)
	}
	path := hostile.Write(t, data)
	if err := os.Truncate(path, hole); err != nil {
		t.Fatal(err)
	}
	file := mustOpen(t, path)
	hostile.Cost(t, 4*mega, func() {
		if _, err := file.Symbol("nothing"); !errors.Is(err, objfile.ErrNoSymbol) {
			t.Error(err)
		}
	})
}

// TestHostileChecksum: a file that is named by .gnu_debuglink is read once.
func TestHostileChecksum(t *testing.T) {
	link := append([]byte("other\x00\x00\x00"), 1, 2, 3, 4)
	path := hostile.Write(t, hostile.ELF(hostile.Section{Name: ".gnu_debuglink", Type: elf.SHT_PROGBITS, Content: link}))
	other := path[:len(path)-len("hostile")] + "other"
	files.Write(t, other, hostile.ELF(), 0o600)
	if err := os.Truncate(other, 1<<30); err != nil {
		t.Fatal(err)
	}
	file := mustOpen(t, path)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	took := func() time.Duration {
		begun := clock.Thread()
		file.DebugFile()
		return clock.Thread() - begun
	}
	if first, second := took(), took(); second > first/10 {
		t.Errorf("the first time, which reads it, took %v of processor, and the second one %v", first, second)
	}
}

// TestHostileMappings: a process that has mapped one object very often.
func TestHostileMappings(t *testing.T) {
	file, err := os.Open(hostile.Write(t, append(hostile.ELF(), make([]byte, 8192)...)))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for range 5000 {
		page, err := unix.Mmap(int(file.Fd()), 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Munmap(page) })
	}
	if images, err := objfile.Images(os.Getpid()); !errors.Is(err, objfile.ErrUnsupported) {
		t.Errorf("%d images, %v", len(images), err)
	}
}

// TestHostileDigest: a hole of a terabyte is not read.
func TestHostileDigest(t *testing.T) {
	path := hostile.Write(t, nil)
	if err := os.Truncate(path, 1<<40); err != nil {
		t.Fatal(err)
	}
	digests := objfile.NewDigests("")
	hostile.Cost(t, mega, func() {
		if _, err := digests.Digest(t.Context(), path); !errors.Is(err, bounded.ErrLimit) {
			t.Error(err)
		}
	})
}

// TestHostileSegments: one range of the file, to be loaded very often.
func TestHostileSegments(t *testing.T) {
	const segments = 1000
	image := hostile.ELF()
	binary.LittleEndian.PutUint16(image[56:], segments)
	binary.LittleEndian.PutUint64(image[40:], 0) // no sections
	image = append(append(image[:64], bytes.Repeat(image[64:64+56], segments)...), make([]byte, 4096)...)
	file := mustOpen(t, hostile.Write(t, image))
	if all, err := file.Loaded(mega); !errors.Is(err, objfile.ErrUnsupported) {
		t.Errorf("%d segments, %v", len(all), err)
	}
}

// TestHostileFrames: what all entries have in common is long, and they are many; or there
// are more of them than anybody needs.
func TestHostileFrames(t *testing.T) {
	file := mustOpen(t, hostile.Write(t, hostile.ELF(hostile.Frames(4*mega, 400_000))))
	hostile.Cost(t, 200*mega, func() {
		if frames, err := file.Frames(); err != nil || len(frames) != 400_000 {
			t.Errorf("%d frames, %v", len(frames), err)
		}
	})
	file = mustOpen(t, hostile.Write(t, hostile.ELF(hostile.Frames(0, 2_200_000))))
	hostile.Cost(t, 400*mega, func() {
		if _, err := file.Frames(); !errors.Is(err, objfile.ErrUnsupported) {
			t.Errorf("error %v", err)
		}
	})
}
