// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"testing"
	"time"
)

func TestWithChildren(t *testing.T) {
	stat := "7 (a) b) S 1 7 7 0 -1 4194560 100 20 3 4 5 6 70 80 20 0 1 0 999 0 0"
	user, system, children, minor, major := withChildren(stat)
	if user != 750*time.Millisecond || system != 860*time.Millisecond || children != 1500*time.Millisecond || minor != 120 || major != 7 {
		t.Errorf("%v, %v, %v, %d, %d", user, system, children, minor, major)
	}
	if user, _, _, _, _ := withChildren("7 (a) Z 1"); user != 0 {
		t.Errorf("cut off: %v", user)
	}
}

func TestParseIO(t *testing.T) {
	var got taken
	text := "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 6\ncancelled_write_bytes: 2\n"
	if err := parseIO([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	if want := (taken{read: 1, written: 2, readCalls: 3, writtenCalls: 4, storageRead: 5, storageWritten: 4}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if err := parseIO([]byte("rchar: x\n"), &got); err == nil {
		t.Error("no number is taken for one")
	}
}
