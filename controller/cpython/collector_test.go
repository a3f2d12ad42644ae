// SPDX-License-Identifier: Apache-2.0

package cpython

import (
	"encoding/binary"
	"errors"
	"math"
	"testing"
)

const base = 0x7f0000001000

// state is that of a collector at an address: its thresholds, collections of each
// generation, and what lives long.
func state(at uint64, thresholds [3]int32, collections [3]uint64, longLived, waiting uint64) []byte {
	out := make([]byte, stateBytes)
	for g := range generations {
		binary.LittleEndian.PutUint32(out[g*generationBytes+threshold:], uint32(thresholds[g]))
		binary.LittleEndian.PutUint64(out[statistics+g*statisticsBytes:], collections[g])
	}
	binary.LittleEndian.PutUint64(out[youngest:], at)
	binary.LittleEndian.PutUint64(out[longLivedAt:], longLived)
	binary.LittleEndian.PutUint64(out[pendingAt:], waiting)
	return out
}

func usual() [3]int32 { return [3]int32{700, 10, 10} }

func TestFind(t *testing.T) {
	plain := func(at uint64) []byte { return state(at, usual(), [3]uint64{5, 2, 1}, 3000, 100) }
	tests := []struct {
		name   string
		states map[uint64][]byte // by their offsets in _PyRuntime
		want   uint64            // 0: none
	}{
		{"one", map[uint64][]byte{0x80: plain(base + 0x80)}, base + 0x80},
		{"at the end", map[uint64][]byte{0x1000 - stateBytes: plain(base + 0x1000 - stateBytes)}, base + 0x1000 - stateBytes},
		{"none", nil, 0},
		{"two", map[uint64][]byte{0x80: plain(base + 0x80), 0x800: plain(base + 0x800)}, 0},
		{"a pointer elsewhere", map[uint64][]byte{0x80: plain(base + 0x88)}, 0},
		{"negative counts", map[uint64][]byte{0x80: state(base+0x80, usual(), [3]uint64{1 << 63}, 0, 0)}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			runtime := make([]byte, 0x1000)
			for offset, s := range tt.states {
				copy(runtime[offset:], s)
			}
			got, err := find(runtime, base)
			if got != tt.want || (err == nil) != (tt.want != 0) || err != nil && !errors.Is(err, ErrNoCollector) {
				t.Errorf("found %#x, %v; want %#x", got, err, tt.want)
			}
		})
	}
}

func mustParse(t *testing.T, state []byte) Collector {
	t.Helper()
	c, err := parse(state, base)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestVisitsSince(t *testing.T) {
	tests := []struct {
		name          string
		before, after []byte
		want          uint64
		impossible    bool
	}{
		{"nothing", state(base, usual(), [3]uint64{9, 8, 7}, 1, 1), state(base, usual(), [3]uint64{9, 8, 7}, 1, 1), 0, false},
		{"young ones", state(base, usual(), [3]uint64{9, 8, 7}, 5000, 0), state(base, usual(), [3]uint64{19, 8, 7}, 5000, 0), 7000, false},
		{"middle ones", state(base, usual(), [3]uint64{0, 8, 7}, 5000, 0), state(base, usual(), [3]uint64{0, 9, 7}, 5000, 0), 7700, false},
		{"all, which stay", state(base, usual(), [3]uint64{}, 5000, 1500), state(base, usual(), [3]uint64{2: 2}, 7000, 0), 14000, false},
		{"all, which go", state(base, usual(), [3]uint64{}, 5000, 1500), state(base, usual(), [3]uint64{2: 2}, 100, 0), 13000, false},
		{"a threshold of 200,000", state(base, usual(), [3]uint64{}, 0, 0), state(base, [3]int32{200_000, 20, 20}, [3]uint64{3}, 0, 0), 600_000, false},
		{"by hand, without a threshold", state(base, [3]int32{}, [3]uint64{}, 0, 0), state(base, [3]int32{-5, -1, 0}, [3]uint64{4, 4, 4}, 10, 0), 40, false},
		{"another collector", state(base, usual(), [3]uint64{9, 8, 7}, 0, 0), state(base, usual(), [3]uint64{10, 9, 6}, 0, 0), 0, true},
		{
			"more than there can be",
			state(base, usual(), [3]uint64{}, math.MaxInt64, math.MaxInt64),
			state(base, [3]int32{math.MaxInt32, math.MaxInt32, 0}, [3]uint64{math.MaxInt64, math.MaxInt64, math.MaxInt64}, math.MaxInt64, 0), maxVisits, false,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := mustParse(t, tt.after).VisitsSince(mustParse(t, tt.before))
			if got != tt.want || ok == tt.impossible {
				t.Errorf("%d visits, %v; want %d", got, ok, tt.want)
			}
		})
	}
}

func TestNamed(t *testing.T) {
	for object, want := range map[string]bool{
		"/usr/bin/python3.11": true, "/opt/lib/libpython3.12.so.1.0": true, "python": true,
		"/usr/lib/python3/dist-packages/numpy/core/_multiarray_umath.so": false, "": false, "/usr/bin/ipython3": false,
	} {
		if Named(object) != want {
			t.Errorf("%q: %v, want %v", object, !want, want)
		}
	}
}

// Whatever stands in the memory of a program, visits are counted or not.
func FuzzVisits(f *testing.F) {
	f.Add(state(base, usual(), [3]uint64{1, 2, 3}, 4, 5), state(base, usual(), [3]uint64{5, 6, 7}, 8, 9))
	f.Fuzz(func(t *testing.T, one, other []byte) {
		before, err := parse(one, base)
		after, e := parse(other, base)
		if err != nil || e != nil {
			return
		}
		if visits, ok := after.VisitsSince(before); visits > maxVisits || !ok && visits != 0 {
			t.Errorf("%d visits, %v", visits, ok)
		}
	})
}
