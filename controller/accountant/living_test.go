// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
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

// TestUndoneThreads: a first thread that ended before the others is undone if it ended since it was looked at
// what is done, and so is in no sum yet.
func TestUndoneThreads(t *testing.T) {
	program := targets.Build(t, "testdata/held_memory.c", "-O0", "-pthread")
	target := targets.StartCommand(t, exec.Command(program, "1", "second"))
	patience.Until(t, "the first thread to end", func() bool {
		stat, err := procid.ReadStat(target.PID)
		return err == nil && stat.Dead()
	})
	for _, before := range []bool{true, false} {
		p := living{pid: target.PID, firstDone: before}
		if tids := p.undone(); slices.Contains(tids, target.PID) == before || slices.Max(tids) == target.PID {
			t.Errorf("ended before: %v, undone are %v", before, tids)
		}
	}
	if err := target.End(t); err != nil {
		t.Error(err)
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
