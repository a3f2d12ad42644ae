// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"bufio"
	"debug/elf"
	"encoding/binary"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/arch/x86/x86asm"
)

// mustMeanTheSame decodes what Relocate makes and compares it with the
// original instruction: same operation, same operands, same targets, and on to
// the next instruction.
func mustMeanTheSame(t *testing.T, s Site, at uint64) {
	t.Helper()
	moved, err := s.Relocate(at)
	if err != nil {
		return // too far: refused is right
	}
	if len(moved) > blockNumber-blockNext {
		t.Fatalf("% x: %d bytes do not fit a block", s.Original, len(moved))
	}
	inst, err := x86asm.Decode(moved, 64)
	if err != nil {
		t.Fatalf("% x moved: % x: %v", s.Original, moved, err)
	}
	if inst.Op != s.inst.Op {
		t.Fatalf("%v became %v", s.inst, inst)
	}
	for i, want := range s.inst.Args {
		if !sameOperand(want, inst.Args[i]) {
			t.Fatalf("%v became %v", s.inst, inst)
		}
	}
	if s.inst.PCRel != 0 && pointsAt(at, moved, inst) != pointsAt(s.Address, s.Original, s.inst) {
		t.Fatalf("%v points at %#x, moved at %#x", s.inst, pointsAt(s.Address, s.Original, s.inst), pointsAt(at, moved, inst))
	}
	if s.inst.Op == x86asm.JMP && s.branches() {
		return
	}
	rest := moved[inst.Len:]
	if back, ok := JumpTarget(at+uint64(inst.Len), rest); !ok || back != s.Continue() || len(rest) != JumpBytes {
		t.Fatalf("%v goes on at %#x, want %#x", inst, back, s.Continue())
	}
}

// sameOperand compares operands, relative displacements apart.
func sameOperand(a, b x86asm.Arg) bool {
	if _, ok := a.(x86asm.Rel); ok {
		_, ok = b.(x86asm.Rel)
		return ok
	}
	ma, okA := a.(x86asm.Mem)
	mb, okB := b.(x86asm.Mem)
	if okA && okB && ma.Base == x86asm.RIP && mb.Base == x86asm.RIP {
		ma.Disp, mb.Disp = 0, 0
		return ma == mb
	}
	return a == b
}

// pointsAt is written apart from Site.target on purpose: it takes the operand
// as the decoder gives it.
func pointsAt(at uint64, code []byte, inst x86asm.Inst) uint64 {
	for _, a := range inst.Args {
		switch a := a.(type) {
		case x86asm.Rel:
			return at + uint64(inst.Len) + uint64(int64(a))
		case x86asm.Mem:
			if a.Base == x86asm.RIP {
				return at + uint64(inst.Len) + uint64(int64(int32(binary.LittleEndian.Uint32(code[inst.PCRelOff:]))))
			}
		}
	}
	return 0
}

// libraries are real objects of this machine: the more of them the better.
func libraries(t *testing.T) (paths []string) {
	t.Helper()
	for _, pattern := range []string{
		"/lib/*/libc.so.6", "/lib/*/libm.so.6", "/lib*/*/libcrypto.so.*", "/usr/lib/*/libcrypto.so.*",
		"/usr/lib/*/libstdc++.so.6", "/usr/lib/*/libpython3*.so.*", "/usr/bin/python3", "/usr/lib/*/libgomp.so.1",
	} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, found...)
	}
	if len(paths) == 0 {
		t.Skip("no library of the list is on this machine")
	}
	return paths
}

type function struct {
	name  string
	entry uint64
	code  []byte
}

func functions(t *testing.T, path string) (out []function) {
	t.Helper()
	file, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if file.Machine != elf.EM_X86_64 {
		t.Skipf("%s is not for x86-64", path)
	}
	symbols, _ := file.Symbols() // stripped: none
	dynamic, err := file.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[uint64]bool)
	for _, s := range append(symbols, dynamic...) {
		if elf.ST_TYPE(s.Info) != elf.STT_FUNC || s.Section == elf.SHN_UNDEF || int(s.Section) >= len(file.Sections) || seen[s.Value] {
			continue
		}
		seen[s.Value] = true
		section := file.Sections[s.Section]
		n := min(SiteBytes, section.Addr+section.Size-s.Value)
		code := make([]byte, n)
		if _, err := section.ReadAt(code, int64(s.Value-section.Addr)); err != nil {
			t.Fatalf("%s: %s: %v", path, s.Name, err)
		}
		out = append(out, function{s.Name, s.Value, code})
	}
	return out
}

// TestRealFunctions moves the first instruction of every function of real
// libraries, and says how many can be.
func TestRealFunctions(t *testing.T) {
	const bias = 0x7f1234567000
	for _, path := range libraries(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			all := functions(t, path)
			image := Region{Start: bias, End: bias + all[len(all)-1].entry}
			for _, f := range all {
				image.End = max(image.End, bias+f.entry)
			}
			patchable, landings := 0, 0
			for _, f := range all {
				s, err := Examine(f.entry+bias, f.code)
				if err != nil {
					t.Logf("%s: %v", f.name, err)
					continue
				}
				patchable++
				if start, end := Stretch(s.Landing); Placeable(start, end, []Region{image}) == nil {
					landings++
				}
				mustMeanTheSame(t, s, (s.Landing&^(SlotBytes-1))+blockNext)
				mustMeanTheSame(t, s, (s.Address&^(SlotBytes-1))+1<<21+blockNext)
			}
			t.Logf("%d of %d functions can be patched, jumps of %d lead out of the object", patchable, len(all), landings)
			if patchable*100 < len(all)*90 {
				t.Errorf("only %d of %d functions can be patched", patchable, len(all))
			}
		})
	}
}

var disassembled = regexp.MustCompile(`^ *([0-9a-f]+):\t`)

// TestLengthsAgainstDisassembler compares with objdump where instructions end:
// a wrong length would be a jump into the middle of the next instruction.
func TestLengthsAgainstDisassembler(t *testing.T) {
	if _, err := exec.LookPath("objdump"); err != nil {
		t.Skip("objdump is not installed")
	}
	checked := 0
	for _, path := range libraries(t)[:1] {
		next := boundaries(t, path)
		for _, f := range functions(t, path) {
			s, err := Examine(f.entry, f.code)
			if err != nil || next[s.Address] == 0 {
				continue
			}
			checked++
			if next[s.Address] != s.Continue() {
				t.Errorf("%s: % x ends at %#x, objdump says %#x", f.name, s.Original, s.Continue(), next[s.Address])
			}
		}
	}
	if checked < 100 {
		t.Errorf("only %d functions were compared", checked)
	}
}

// boundaries maps the address of each instruction to that of the next.
func boundaries(t *testing.T, path string) map[uint64]uint64 {
	t.Helper()
	text, err := exec.Command("objdump", "-d", "--no-show-raw-insn", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	next := make(map[uint64]uint64)
	var last uint64
	lines := bufio.NewScanner(strings.NewReader(string(text)))
	for lines.Scan() {
		match := disassembled.FindStringSubmatch(lines.Text())
		if match == nil {
			continue
		}
		at, err := strconv.ParseUint(match[1], 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		next[last] = at
		last = at
	}
	return next
}
