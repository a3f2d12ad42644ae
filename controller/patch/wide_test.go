// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/controller/patch/flow"
)

// Where the file of these tests numbers its code, and where it is mapped.
const (
	inFile = 0x1000
	mapped = 0x555555554000
)

// object is what a file has around a function.
type object struct {
	flow.Surroundings
	text []flow.Part // what is code
}

// objectOf is an object of one function.
func objectOf(function []byte) object {
	f := flow.Part{Address: inFile, Code: function}
	return object{flow.Surroundings{
		Function: []flow.Part{f}, Loaded: []flow.Part{f},
		Begins:  func(address uint64) bool { return address == inFile },
		Holding: func(uint64) (flow.Part, bool) { return flow.Part{}, false },
	}, []flow.Part{f}}
}

// mustAim completes it.
func (o object) mustAim(t *testing.T) flow.Surroundings {
	t.Helper()
	var err error
	if o.Aims, err = flow.NewAims(o.Loaded, o.text); err != nil {
		t.Fatal(err)
	}
	return o.Surroundings
}

// around is all that is around a function that is alone.
func around(t *testing.T, function []byte) flow.Surroundings {
	t.Helper()
	return objectOf(function).mustAim(t)
}

// A function that goes in circles behind its first instruction, and its frame.
var (
	pushes  = []byte{0x55, 0x48, 0x89, 0xe5, 0x41, 0x54, 0x31, 0xc0, 0x41, 0x5c, 0x5d, 0xc3} // push; mov; push; xor; pop; pop; ret
	circles = []byte{0x31, 0xc0, 0xff, 0xc0, 0x3b, 0x07, 0x75, 0xfa, 0xc3}                   // 1: inc %eax; cmp (%rdi),%eax; jne 1b
)

// orEAX is an opcode that looks like the ModRM byte of an operand like x(%rip).
const orEAX = 0x0d

func word32(value int32) []byte { return binary.LittleEndian.AppendUint32(nil, uint32(value)) }

// holds adds a function of which it is known where it begins.
func holds(s *object, first byte, code ...byte) {
	known := flow.Part{Address: 0x9000, Code: append([]byte{first}, code...)}
	s.text = append(s.text, known)
	s.Holding = func(address uint64) (flow.Part, bool) { return known, known.Holds(address) }
}

func TestWide(t *testing.T) {
	lea := slices.Concat([]byte{0x48, 0x8d, 0x05}, word32(0x2000-inFile-7), pushes) // lea table(%rip), %rax
	tests := []struct {
		name     string
		function []byte
		around   func(s *object)
		length   int
		refused  string
	}{
		{"several instructions", pushes, nil, 6, ""},
		{"one instruction", []byte{0xb8, 1, 0, 0, 0, 0xc3}, nil, 5, ""},
		{"relative operand", []byte{0x48, 0x8b, 0x05, 1, 2, 3, 4, 0xc3}, nil, 7, ""},
		{"conditional jump", []byte{0x85, 0xff, 0x74, 0x04, 0x31, 0xc0, 0xff, 0xc0, 0xc3}, nil, 6, ""},
		{"too short", []byte{0x31, 0xc0, 0xc3}, nil, 0, "too few for a whole jump"},
		{"ends before", []byte{0xeb, 0x05, 0x90, 0x90, 0x90, 0x90, 0x90, 0xc3}, nil, 0, "too few for a whole jump"},
		{"call", []byte{0x53, 0xe8, 1, 0, 0, 0, 0x5b, 0xc3}, nil, 0, "is a call"},
		{"branch into it", circles, nil, 0, "a branch at 0x1006 leads into"},
		{"not understood", slices.Concat(pushes[:6], []byte{0x06}), nil, 0, "is not understood"},
		{"symbol in it", pushes, func(s *object) {
			s.Begins = func(address uint64) bool { return address == inFile+4 }
		}, 0, "a symbol at 0x1004"},
		{"neighbour jumps into it", pushes, func(s *object) {
			s.Near = []flow.Part{{Address: inFile + 0x20, Code: []byte{0xeb, 0xdf}}}
		}, 0, "a branch at 0x1020"},
		{"far code leads into it", pushes, func(s *object) {
			s.text = append(s.text, flow.Part{Address: 0x9000, Code: slices.Concat([]byte{0xe9}, word32(inFile+1-0x9005))})
		}, 0, "code at 0x9001"},
		{"known code leads into it", pushes, func(s *object) { holds(s, 0xe9, word32(inFile+1-0x9005)...) }, 0, "code at 0x9001"},
		{"known code loads its address", pushes, func(s *object) {
			holds(s, 0x48, slices.Concat([]byte{0x8d, 0x05}, word32(inFile+1-0x9007))...)
		}, 0, "code at 0x9003"},
		{"no operand of any instruction", pushes, func(s *object) {
			s.text = append(s.text, flow.Part{Address: 0x9000, Code: slices.Concat([]byte{0xb8}, word32(inFile+1-0x9005))})
		}, 6, ""},
		{"another operand of known code", pushes, func(s *object) { holds(s, orEAX, word32(inFile+1-0x9005)...) }, 6, ""},
		{"across instructions of known code", pushes, func(s *object) {
			distance := word32(inFile + 1 - 0x9006) // its last byte begins inc %eax
			holds(s, 0xb8, slices.Concat([]byte{0x05}, distance, []byte{0xc0})...)
		}, 6, ""},
		{"known code that holds data", pushes, func(s *object) {
			holds(s, orEAX, slices.Concat(word32(inFile+1-0x9005), []byte{0xeb, 0xfa})...)
		}, 0, "code at 0x9001"},
		{"far code leads to its entry", pushes, func(s *object) {
			s.text = append(s.text, flow.Part{Address: 0x9000, Code: slices.Concat([]byte{0xe8}, word32(inFile-0x9005))})
		}, 6, ""},
		{"pointer into it", pushes, func(s *object) {
			s.Loaded = append(s.Loaded, flow.Part{Address: 0x4000, Code: binary.LittleEndian.AppendUint64(nil, inFile+1)})
		}, 0, "a pointer in the file at 0x4000"},
		{"table of jumps", lea, func(s *object) {
			s.Loaded = append(s.Loaded, flow.Part{Address: 0x2000, Code: slices.Concat(word32(inFile+20-0x2000), word32(inFile+4-0x2000))})
		}, 0, "a table of jumps at 0x2004"},
		{"table without it", lea, func(s *object) {
			s.Loaded = append(s.Loaded, flow.Part{Address: 0x2000, Code: word32(inFile + 20 - 0x2000)})
		}, 7, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			o := objectOf(test.function)
			if test.around != nil {
				test.around(&o)
			}
			site, err := Wide(inFile, test.function, o.mustAim(t), mapped)
			if test.refused != "" {
				if !errors.Is(err, ErrUnpatchable) || !strings.Contains(err.Error(), test.refused) {
					t.Fatalf("error %v, want one about %q", err, test.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(site.Original) != test.length || site.Continue() != mapped+inFile+uint64(test.length) {
				t.Errorf("%d bytes, on at %#x; want %d", len(site.Original), site.Continue(), test.length)
			}
		})
	}
}

// The jump leads to its landing, is known again, and goes without a trace.
func TestWideJump(t *testing.T) {
	site, err := Wide(inFile, pushes, around(t, pushes), mapped)
	if err != nil {
		t.Fatal(err)
	}
	if site, err = site.To(mapped + 0x100000); err != nil {
		t.Fatal(err)
	}
	patched := site.Patched()
	if to, ok := JumpTarget(site.Address, patched); !ok || to != site.Landing || !bytes.Equal(patched[JumpBytes:], pushes[JumpBytes:len(patched)]) {
		t.Errorf("% x leads to %#x", patched, to)
	}
	if again, ok := site.Recognize(patched); !ok || again.Landing != site.Landing {
		t.Errorf("patched: %#x, %v", again.Landing, ok)
	}
	if _, ok := site.Recognize(site.Original); ok {
		t.Error("what is not patched is taken for it")
	}
	if _, err := site.To(site.Address + 1<<32); !errors.Is(err, ErrUnpatchable) {
		t.Errorf("4 GiB away: %v", err)
	}
	landing, pointer, err := site.OwnLanding()
	if at, ok := PointerOf(site.Landing, landing); err != nil || !ok || at != pointer {
		t.Errorf("the landing goes through %#x, want %#x; %v", at, pointer, err)
	}
}

// All points of a function are measured by one call: its number says how many blocks
// there are behind it.
func TestPointsShareACall(t *testing.T) {
	ret := flow.Exit{Address: inFile + 11}
	site, err := WideExit(ret, around(t, pushes), mapped)
	if err != nil {
		t.Fatal(err)
	}
	if site, err = site.To(mapped + 0x100000); err != nil {
		t.Fatal(err)
	}
	const at = mapped + 0x110000
	code, err := Program{Numbers: []uint32{7, 8, 9}}.Code(site, at, Environment{Hook: 1})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []uint32{7 | 2<<16, 8 | 1<<16, 9} {
		block := code[(1+i)*blockBytes:][:blockBytes] // one before does what the function does
		if got := binary.LittleEndian.Uint32(block[blockNumber:]); got != want {
			t.Errorf("number %d is %#x, want %#x", i, got, want)
		}
		if calls := block[0] == 0xff; calls != (i == 0) {
			t.Errorf("block %d begins with % x", i, block[:8])
		}
	}
	behind, ok := JumpTarget(at+blockBytes+blockNext, code[blockBytes+blockNext:])
	if !ok || behind < at+4*blockBytes || code[behind-at] != 0xc3 {
		t.Errorf("then it goes to %#x", behind)
	}
}

// The instructions before an exit are done first, then the exit is seen.
func TestWideExit(t *testing.T) {
	ret := flow.Exit{Address: inFile + 11}
	site, err := WideExit(ret, around(t, pushes), mapped)
	if err != nil {
		t.Fatal(err)
	}
	if want := mapped + inFile + uint64(6); site.Address != want || !bytes.Equal(site.Original, pushes[6:]) {
		t.Fatalf("% x at %#x, want % x at %#x", site.Original, site.Address, pushes[6:], want)
	}
	if site, err = site.To(mapped + 0x100000); err != nil {
		t.Fatal(err)
	}
	const at = mapped + 0x110000
	code, err := Program{Numbers: []uint32{7}}.Code(site, at, Environment{Hook: 1})
	if err != nil {
		t.Fatal(err)
	}
	before := pushes[6:11]
	if !bytes.HasPrefix(code, before) {
		t.Errorf("it begins with % x, want % x", code[:5], before)
	}
	if to, ok := JumpTarget(at+uint64(len(before)), code[len(before):]); !ok || to != at+blockBytes {
		t.Errorf("then it goes to %#x", to)
	}
	if code[blockBytes] != 0xff || code[blockBytes+1] != 0x15 || code[blockBytes+blockNumber] != 7 {
		t.Errorf("then % x", code[blockBytes:blockBytes+8])
	}
	behind, ok := JumpTarget(at+blockBytes+blockNext, code[blockBytes+blockNext:])
	if !ok || code[behind-at] != 0xc3 {
		t.Errorf("then to %#x: % x", behind, code[behind-at])
	}
	for name, exit := range map[string]flow.Exit{"conditional": {Address: inFile + 11, Conditional: true}, "no instruction": {Address: inFile + 2}} {
		if _, err := WideExit(exit, around(t, pushes), mapped); !errors.Is(err, ErrUnpatchable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := WideExit(flow.Exit{Address: inFile + 8}, around(t, circles), mapped); !errors.Is(err, ErrUnpatchable) {
		t.Errorf("a branch before the end: %v", err)
	}
}

// The kernel writes each page by itself.
func TestWideOnTwoPages(t *testing.T) {
	for before, refused := range map[uint64]bool{JumpBytes: false, JumpBytes - 1: true, 1: true, 0: false} {
		_, err := Wide(inFile, pushes, around(t, pushes), mapped+PageBytes-before)
		if errors.Is(err, ErrUnpatchable) != refused {
			t.Errorf("%d bytes before the end of a page: %v", before, err)
		}
	}
}

// Behind an exit the jump takes what is never executed.
func TestPaddedExit(t *testing.T) {
	code := func(behind ...byte) []byte { return append([]byte{0x31, 0xc0, 0x75, 0x00, 0xc3}, behind...) } // xor; jne 1f; 1: ret
	const ret = inFile + 4
	tests := []struct {
		name   string
		code   []byte
		exit   flow.Exit
		around func(s *object)
		padded bool
	}{
		{"one long no-operation", code(0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0), flow.Exit{}, nil, true},
		{"short ones", code(0x90, 0x66, 0x90, 0x90, 0x53), flow.Exit{}, nil, true},
		{"traps", code(0xcc, 0xcc, 0xcc, 0xcc), flow.Exit{}, nil, true},
		{"too few of them", code(0x90, 0x90, 0x90, 0x53, 0x5b), flow.Exit{}, nil, false},
		{"a landing pad", code(0xf3, 0x0f, 0x1e, 0xfa, 0x31, 0xc0), flow.Exit{}, nil, false},
		{"another function", code(0x53, 0x31, 0xc0, 0x5b, 0xc3), flow.Exit{}, nil, false},
		{"the end of what is loaded", code(0x90, 0x90, 0x90), flow.Exit{}, nil, false},
		{"a jump to another function", []byte{0x31, 0xc0, 0x31, 0xc0, 0xeb, 0x70, 0x90, 0x90, 0x90}, flow.Exit{Tail: true}, nil, true},
		{"one that may be passed", []byte{0x31, 0xc0, 0x31, 0xc0, 0x75, 0x70, 0x90, 0x90, 0x90}, flow.Exit{Tail: true, Conditional: true}, nil, false},
		{"a symbol in the padding", code(0x90, 0x90, 0x90, 0x90), flow.Exit{}, func(s *object) {
			s.Begins = func(address uint64) bool { return address == ret+2 }
		}, false},
		{"a branch into the padding", code(0x90, 0x90, 0x90, 0x90), flow.Exit{}, func(s *object) {
			s.Near = []flow.Part{{Address: inFile + 0x20, Code: []byte{0xeb, 0xe4}}}
		}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			length := 5
			if test.exit.Tail {
				length = 6
			}
			o := objectOf(test.code[:length])
			o.Loaded[0].Code = test.code
			o.text = o.Loaded
			if test.around != nil {
				test.around(&o)
			}
			test.exit.Address = ret
			site, err := WideExit(test.exit, o.mustAim(t), mapped)
			if padded := err == nil && site.Address == mapped+ret; padded != test.padded {
				t.Fatalf("%v, want %v; % x at %#x, %v", padded, test.padded, site.Original, site.Address, err)
			}
			if !test.padded {
				return
			}
			if !bytes.Equal(site.Original, test.code[4:4+JumpBytes]) || site.behind() != site.Address+JumpBytes {
				t.Errorf("% x up to %#x", site.Original, site.behind())
			}
			if site, err = site.To(mapped + 0x100000); err != nil {
				t.Fatal(err)
			}
			if to, ok := JumpTarget(site.Address, site.Patched()); !ok || to != site.Landing {
				t.Errorf("% x leads to %#x", site.Patched(), to)
			}
		})
	}
}
