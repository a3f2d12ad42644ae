// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"bytes"
	"testing"
)

// Names share their ends, so any offset may be where one begins.
func TestBegins(t *testing.T) {
	names := []byte("\x00memcpy\x00__memcpy_chk\x00aaaa\x00free\x00mem")
	for _, part := range []string{"mem", "memcpy", "a", "aa", "free", "e", "x", "", "\x00"} {
		near := begins(names, []byte(part))
		for at := range names {
			want := bytes.Contains(text(names, uint64(at)), []byte(part))
			if got := near.has(uint64(at)); want && !got {
				t.Errorf("%q begins at %d with %q, not found", text(names, uint64(at)), at, part)
			}
		}
		if part == "x" && (near.all || len(near.list) > 0) {
			t.Errorf("%q: %+v", part, near)
		}
	}
	if got := begins(names, []byte("memcpy")); got.all || len(got.list) != 2 || got.has(14+8) {
		t.Errorf("%+v, want two spans, the second up to the m of memcpy", got)
	}
}
