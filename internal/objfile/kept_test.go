// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"runtime"
	"testing"
)

// What others make of a file is made once for all who have it open at the time.
func TestKept(t *testing.T) {
	cache := NewCache()
	defer cache.Close()
	type first [64]int
	type second [64]int
	made := 0
	ones, others := func() (*first, error) { made++; return new(first), nil }, func() (*second, error) { made++; return new(second), nil }
	get := func() (*first, *second) {
		f, err := cache.Open("/proc/self/exe")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		one, err := Kept(f, ones)
		if err != nil {
			t.Fatal(err)
		}
		other, err := Kept(f, others)
		if err != nil {
			t.Fatal(err)
		}
		return one, other
	}
	one, other := get()
	if again, more := get(); again != one || more != other || made != 2 {
		t.Errorf("made %d times", made)
	}
	runtime.KeepAlive(one)
	runtime.KeepAlive(other)
	runtime.GC()
	if get(); made != 4 {
		t.Errorf("made %d times; what nobody has stays", made)
	}
}
