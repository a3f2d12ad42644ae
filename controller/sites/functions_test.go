// SPDX-License-Identifier: Apache-2.0

package sites

import (
	"errors"
	"slices"
	"testing"

	"github.com/attune-hpc/attune/controller/patch"
	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/internal/objfile"
)

func TestNumbersMeetStubs(t *testing.T) {
	var n Functions
	first, err := n.number(Key{Inode: 1}, Where{Entry: true}, 0)
	if err != nil || first != shm.StubCount-1 {
		t.Fatalf("first number %d, %v", first, err)
	}
	if again, err := n.number(Key{Inode: 1}, Where{Entry: true}, 0); again != first || err != nil {
		t.Errorf("the same function got %d and %d, %v", first, again, err)
	}
	if other, err := n.number(Key{Inode: 1}, Where{Entry: true}, 1); other != first-1 || err != nil {
		t.Errorf("second number %d, %v", other, err)
	}
	if !n.Stub(shm.StubCount-3) || n.Stub(shm.StubCount-2) {
		t.Error("stubs end below the numbers")
	}
	if number, err := n.number(Key{Inode: 2}, Where{Entry: true}, 0); err == nil {
		t.Errorf("number %d is a stub's", number)
	}
}

// A function that a uprobe watches in one process is patched in none, for as long as
// it is watched.
func TestKernelsFunctionsAreNotPatched(t *testing.T) {
	var n Functions
	mine, other, acted := Key{Inode: 1}, Key{Inode: 2}, Key{Inode: 3}
	number, err := n.number(mine, Where{Entry: true}, 0)
	second, err2 := n.number(mine, Where{Entry: true}, 1)
	needed, err3 := n.number(acted, Where{Entry: true}, 0)
	if err := errors.Join(err, err2, err3, n.measures(mine), n.measures(mine), n.act(acted)); err != nil {
		t.Fatal(err)
	}
	_, got, err := n.Leave([]Key{mine, other}, nil, true)
	if slices.Sort(got); err != nil || !slices.Equal(got, []int{second, number}) {
		t.Errorf("patched so far: %v, %v; want %d and %d", got, err, second, number)
	}
	if again, err := n.number(mine, Where{Entry: true}, 0); err != nil || again != number {
		t.Errorf("given away before anybody saw to its patches: %d, %v", again, err)
	}
	if _, err := n.Take([]int{number, needed}); !errors.Is(err, ErrActed) || n.kernel(mine) || n.kernel(acted) {
		t.Errorf("an action needs one of the patches: %v", err)
	}
	taken, err := n.Take([]int{number})
	if err != nil {
		t.Fatal(err)
	}
	n.ends(mine, 2)
	kept, got, err := n.Leave([]Key{mine, other}, nil, false)
	if err != nil || len(got) != 0 {
		t.Errorf("patched still: %v, %v", got, err)
	}
	for _, key := range []Key{mine, other} {
		if _, err := n.number(key, Where{Entry: true}, 0); !errors.Is(err, ErrWatched) || !errors.Is(n.measures(key), ErrWatched) {
			t.Errorf("%v: %v", key, err)
		}
	}
	if kept.Idle() {
		t.Error("nobody needs the uprobe, while its point is on its way")
	}
	if taken.Return(); !kept.Idle() || !n.kernel(mine) {
		t.Error("the one uprobe that is left is needed, or gone")
	}
	again := kept.Again()
	if kept.Return(); !n.kernel(mine) {
		t.Error("one of two uprobes is out, and the function is given back")
	}
	again.Return()
	if err := n.measures(mine); err != nil || n.kernel(other) {
		t.Errorf("all uprobes are out: %v", err)
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
		if _, _, err := first.Leave(nil, []Key{at(offset)}, true); err != nil {
			t.Error(err)
		}
		if _, err := first.reach(f, site); errors.Is(err, errReached) != within {
			t.Errorf("a uprobe at %d, then a patch at 9: %v", offset, err)
		}
		giveBack, err := then.reach(f, site)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := then.Leave(nil, []Key{at(offset)}, true); errors.Is(err, ErrJump) != within {
			t.Errorf("a patch at 9, then a uprobe at %d: %v", offset, err)
		}
		giveBack()
		if _, _, err := then.Leave(nil, []Key{at(offset)}, true); err != nil {
			t.Errorf("no patch at 9, and a uprobe at %d: %v", offset, err)
		}
	}
}

// A process ends whose functions were acted on, and nobody has measured any.
func TestFunctionsThatNobodyMeasured(t *testing.T) {
	f := new(Functions)
	f.ends(Key{Inode: 1}, 0)
	if err := f.measures(Key{Inode: 1}); err != nil {
		t.Error(err)
	}
	f.ends(Key{Inode: 1}, 1)
	if len(f.measured) != 0 {
		t.Errorf("measured: %v", f.measured)
	}
}
