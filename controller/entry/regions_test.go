// SPDX-License-Identifier: Apache-2.0

package entry

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attune-hpc/attune/controller/patch"
	"github.com/attune-hpc/attune/internal/objfile"
)

func TestRegionsOf(t *testing.T) {
	mappings, err := objfile.ParseMaps([]byte(`55d0e0000000-55d0e0001000 r-xp 00000000 fe:00 1234       /bin/a name
55d0e0800000-55d0e0801000 r-xp 00000000 00:00 0
55d0e0900000-55d0e0901000 r--p 00000000 00:00 0
55d0e1000000-55d0e1021000 rw-p 00000000 00:00 0          [heap]
7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0          [stack]
`))
	got := regionsOf(mappings)
	want := []patch.Region{
		{Start: 0x55d0e0000000, End: 0x55d0e0001000},
		{Start: 0x55d0e0800000, End: 0x55d0e0801000, Bare: true},
		{Start: 0x55d0e0900000, End: 0x55d0e0901000},
		{Start: 0x55d0e1000000, End: 0x55d0e1021000, Grows: patch.Upward},
		{Start: 0x7ffd00000000, End: 0x7ffd00021000, Grows: patch.Downward},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v: %s", err, diff)
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
