// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"debug/elf"
	"encoding/binary"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/arch/x86/x86asm"

	"github.com/attune-hpc/attune/internal/testing/targets"
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
	if inst.Op != s.last().Op {
		t.Fatalf("%v became %v", s.last(), inst)
	}
	for i, want := range s.last().Args {
		if !sameOperand(want, inst.Args[i]) {
			t.Fatalf("%v became %v", s.last(), inst)
		}
	}
	if s.last().PCRel != 0 && pointsAt(at, moved, inst) != pointsAt(s.last().at, s.last().code, s.last().Inst) {
		t.Fatalf("%v points at %#x, moved at %#x", s.last(), pointsAt(s.last().at, s.last().code, s.last().Inst), pointsAt(at, moved, inst))
	}
	if s.last().Op == x86asm.JMP && s.last().branches() {
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
	for _, path := range targets.Libraries(t) {
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

// TestLengthsAgainstDisassembler compares with objdump where instructions end:
// a wrong length would be a jump into the middle of the next instruction.
func TestLengthsAgainstDisassembler(t *testing.T) {
	if _, err := exec.LookPath("objdump"); err != nil {
		t.Fatalf("%v (needs: apt-get install binutils)", err)
	}
	checked := 0
	for _, path := range targets.Libraries(t)[:1] {
		next := targets.Boundaries(t, path)
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
