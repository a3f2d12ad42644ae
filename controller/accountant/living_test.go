// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/procid"
)

func TestWithChildren(t *testing.T) {
	stat, err := procid.ParseStat([]byte("7 (a) b) S 1 7 7 0 -1 4194560 100 20 3 4 5 6 70 80 20 0 1 0 999 0 0 0 0 0 0"))
	if err != nil {
		t.Fatal(err)
	}
	want := taken{user: 750 * time.Millisecond, system: 860 * time.Millisecond, cpu: 1610 * time.Millisecond, minorFaults: 120, majorFaults: 7}
	if got := withChildren(stat, 50*time.Millisecond); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	want.cpu = 1700 * time.Millisecond
	if got := withChildren(stat, 200*time.Millisecond); got != want {
		t.Errorf("%+v, want %+v: the process' own time is more than its ticks tell", got, want)
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
