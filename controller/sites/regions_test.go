// SPDX-License-Identifier: Apache-2.0

package sites

import (
	"errors"
	"math"
	"os"
	"testing"
	"time"

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
	const limit = 1 << 30
	got := regionsOf(mappings, limit)
	want := []patch.Region{
		{Start: 0x55d0e0000000, End: 0x55d0e0001000},
		{Start: 0x55d0e0800000, End: 0x55d0e0801000, Bare: true},
		{Start: 0x55d0e0900000, End: 0x55d0e0901000},
		{Start: 0x55d0e1000000, End: 0x55d0e1021000, Grows: patch.Upward},
		{Start: 0x7ffd00000000, End: 0x7ffd00021000, Grows: patch.Downward, Room: limit},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v: %s", err, diff)
	}
}

// No stack grows over what is mapped below, whatever its limit.
func TestStackWithoutLimit(t *testing.T) {
	mappings := []objfile.Mapping{{Start: 1 << 40, End: 1<<40 + 1<<20}, {Start: 1<<40 + 1<<32, End: 1<<40 + 1<<33, Path: "[stack]"}}
	got := regionsOf(mappings, math.MaxUint64)
	if want := uint64(1<<32 - 1<<20); got[1].Room != want {
		t.Errorf("room of %d bytes, want %d", got[1].Room, want)
	}
}

func TestStackLimit(t *testing.T) {
	for text, want := range map[string]uint64{
		"Limit  Soft Limit  Hard Limit  Units\nMax data size  unlimited  unlimited  bytes\nMax stack size   8388608   unlimited  bytes\n": 8 << 20,
		"Max stack size            unlimited            unlimited            bytes\n":                                                     math.MaxUint64,
	} {
		if got, err := stackLimit([]byte(text)); got != want || err != nil {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
	if _, err := stackLimit([]byte("Max data size unlimited unlimited bytes\n")); err == nil {
		t.Error("limits without one of the stack")
	}
}

// What is mapped is read once for a moment, and anew when it is known to be another.
func TestMapped(t *testing.T) {
	kept := &mapped{used: []patch.Region{{Start: 1, End: 2}}, stale: time.Now().Add(time.Hour)}
	for _, test := range []struct {
		name   string
		m      *mapped
		before func()
		read   bool
	}{
		{"a moment ago", kept, func() {}, false},
		{"not kept", nil, func() {}, true},
		{"known to be another", kept, kept.reread, true},
		{"a while ago", &mapped{used: kept.used, stale: time.Now()}, func() {}, true},
	} {
		test.before()
		mappings, errAll := test.m.all(os.Getpid())
		used, err := test.m.regions(os.Getpid())
		if err := errors.Join(errAll, err); err != nil {
			t.Fatal(err)
		}
		if (len(mappings) > 1) != test.read || (len(used) > 1) != test.read {
			t.Errorf("%s: %d mappings, %d regions", test.name, len(mappings), len(used))
		}
	}
}
