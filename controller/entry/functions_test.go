// SPDX-License-Identifier: Apache-2.0

package entry

import (
	"errors"
	"testing"

	"github.com/attune-hpc/attune/controller/patch"
	"github.com/attune-hpc/attune/controller/ring"
	"github.com/attune-hpc/attune/internal/objfile"
)

func TestNumbersMeetStubs(t *testing.T) {
	var n Functions
	first, err := n.Number(Key{Inode: 1})
	if err != nil || first != ring.StubCount-1 {
		t.Fatalf("first number %d, %v", first, err)
	}
	if again, err := n.Number(Key{Inode: 1}); again != first || err != nil {
		t.Errorf("the same function got %d and %d, %v", first, again, err)
	}
	if other, err := n.Number(Key{Inode: 1, Offset: 16}); other != first-1 || err != nil {
		t.Errorf("second number %d, %v", other, err)
	}
	if !n.Stub(ring.StubCount-3) || n.Stub(ring.StubCount-2) {
		t.Error("stubs end below the numbers")
	}
	if number, err := n.Number(Key{Inode: 2}); err == nil {
		t.Errorf("number %d is a stub's", number)
	}
}

// A function that a uprobe watches in one process is patched in none.
func TestKernelsFunctionsAreNotPatched(t *testing.T) {
	var n Functions
	mine, other := Key{Inode: 1}, Key{Inode: 2}
	number, err := n.Number(mine)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := n.Leave([]Key{mine, other}, nil); err != nil || len(got) != 1 || got[0] != number {
		t.Errorf("patched so far: %v, want %d", got, number)
	}
	if again, err := n.Number(mine); err != nil || again != number {
		t.Errorf("given away before anybody saw to its patches: %d, %v", again, err)
	}
	acted := Key{Inode: 3}
	needed, err := n.Number(acted)
	if err = errors.Join(err, n.act(acted)); err != nil {
		t.Fatal(err)
	}
	if err := n.Take([]int{number, needed}); !errors.Is(err, ErrActed) || n.kernel(mine) || n.kernel(acted) {
		t.Errorf("an action needs one of the patches: %v", err)
	}
	if err := n.Take([]int{number}); err != nil {
		t.Error(err)
	}
	if got, err := n.Leave([]Key{mine, other}, nil); err != nil || len(got) != 0 {
		t.Errorf("patched still: %v, %v", got, err)
	}
	for _, key := range []Key{mine, other} {
		if _, err := n.Number(key); !errors.Is(err, errKernels) {
			t.Errorf("%v: %v", key, err)
		}
	}
	if got, err := n.Leave([]Key{mine}, nil); err != nil || len(got) != 0 {
		t.Errorf("taken out twice: %v", got)
	}
}

// A uprobe's breakpoint and the bytes of a jump exclude each other, whichever
// came first; but for the first byte of a jump of which one byte was changed.
func TestUprobesKeepOutOfJumps(t *testing.T) {
	at := func(offset uint64) Key { return Key{Inode: 4, Offset: offset} }
	f := Function{Image: objfile.Image{Inode: 4}, Symbol: objfile.Symbol{FileOffset: 9, Value: 9}}
	site, err := patch.Examine(9, []byte{0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x10}) // push %rbp; mov ...
	if err != nil {
		t.Fatal(err)
	}
	for offset := uint64(8); offset < 15; offset++ {
		within := offset > 9 && offset < 9+patch.JumpBytes
		var first, then Functions
		if _, err := first.Leave(nil, []Key{at(offset)}); err != nil {
			t.Error(err)
		}
		if _, err := first.reach(f, site); errors.Is(err, errReached) != within {
			t.Errorf("a uprobe at %d, then a patch at 9: %v", offset, err)
		}
		giveBack, err := then.reach(f, site)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := then.Leave(nil, []Key{at(offset)}); errors.Is(err, ErrJump) != within {
			t.Errorf("a patch at 9, then a uprobe at %d: %v", offset, err)
		}
		giveBack()
		if _, err := then.Leave(nil, []Key{at(offset)}); err != nil {
			t.Errorf("no patch at 9, and a uprobe at %d: %v", offset, err)
		}
	}
}
