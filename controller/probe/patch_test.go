// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attune-hpc/attune/controller/patch"
	"github.com/attune-hpc/attune/controller/ring"
)

func TestNumbersMeetStubs(t *testing.T) {
	var n numbers
	first, err := n.of(functionKey{inode: 1})
	if err != nil || first != ring.StubCount-1 {
		t.Fatalf("first number %d, %v", first, err)
	}
	if again, err := n.of(functionKey{inode: 1}); again != first || err != nil {
		t.Errorf("the same function got %d and %d, %v", first, again, err)
	}
	if other, err := n.of(functionKey{inode: 1, offset: 16}); other != first-1 || err != nil {
		t.Errorf("second number %d, %v", other, err)
	}
	if !n.stub(ring.StubCount-3) || n.stub(ring.StubCount-2) {
		t.Error("stubs end below the numbers")
	}
	if number, err := n.of(functionKey{inode: 2}); err == nil {
		t.Errorf("number %d is a stub's", number)
	}
}

// A function that a uprobe watches in one process is patched in none.
func TestKernelsFunctionsAreNotPatched(t *testing.T) {
	var n numbers
	mine, other := functionKey{inode: 1}, functionKey{inode: 2}
	number, err := n.of(mine)
	if err != nil {
		t.Fatal(err)
	}
	if got := n.leave([]functionKey{mine, other}); len(got) != 1 || got[0] != number {
		t.Errorf("patched so far: %v, want %d", got, number)
	}
	for _, key := range []functionKey{mine, other} {
		if _, err := n.of(key); !errors.Is(err, errKernels) {
			t.Errorf("%v: %v", key, err)
		}
	}
	if got := n.leave([]functionKey{mine}); len(got) != 0 {
		t.Errorf("taken out twice: %v", got)
	}
}

func TestParseRegions(t *testing.T) {
	got, err := parseRegions([]byte(`55d0e0000000-55d0e0001000 r-xp 00000000 fe:00 1234       /bin/a name
55d0e1000000-55d0e1021000 rw-p 00000000 00:00 0          [heap]
7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0          [stack]
`))
	want := []patch.Region{
		{Start: 0x55d0e0000000, End: 0x55d0e0001000},
		{Start: 0x55d0e1000000, End: 0x55d0e1021000, Grows: patch.Upward},
		{Start: 0x7ffd00000000, End: 0x7ffd00021000, Grows: patch.Downward},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v: %s", err, diff)
	}
	if _, err := parseRegions([]byte("nonsense\n")); err == nil {
		t.Error("nonsense was parsed")
	}
}

func TestStartOfHeap(t *testing.T) {
	stat := []byte("7 (a) b) S 1 7 7 0 -1 4194560 105 0 0 0 0 0 0 0 20 0 1 0 163137 2576384 234 18446744073709551615 " +
		"94 95 140 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0 98 99 112233 141 142 143 144 0\n")
	if got, err := startOfHeap(stat); got != 112233 || err != nil {
		t.Errorf("start of the heap %d, %v", got, err)
	}
	if _, err := startOfHeap([]byte("7 (a) S 1")); err == nil {
		t.Error("a short line was parsed")
	}
}
