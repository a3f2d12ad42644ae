// SPDX-License-Identifier: Apache-2.0

package entry

import (
	"errors"
	"testing"

	"github.com/attune-hpc/attune/controller/ring"
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
	if got, err := n.Leave([]Key{mine, other}); err != nil || len(got) != 1 || got[0] != number {
		t.Errorf("patched so far: %v, want %d", got, number)
	}
	for _, key := range []Key{mine, other} {
		if _, err := n.Number(key); !errors.Is(err, errKernels) {
			t.Errorf("%v: %v", key, err)
		}
	}
	if got, err := n.Leave([]Key{mine}); err != nil || len(got) != 0 {
		t.Errorf("taken out twice: %v", got)
	}
}
