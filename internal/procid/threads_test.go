// SPDX-License-Identifier: Apache-2.0

package procid_test

import (
	"errors"
	"os"
	"runtime"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/files"
)

func TestThreads(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	tids, err := procid.Threads(os.Getpid())
	if err != nil || len(tids) < 2 || tids[0] != os.Getpid() || !slices.Contains(tids, unix.Gettid()) {
		t.Errorf("threads %v, %v; want %d first, and %d", tids, err, os.Getpid(), unix.Gettid())
	}
	pid, end := startCat(t)
	if tids, err := procid.Threads(pid); err != nil || !slices.Equal(tids, []int{pid}) {
		t.Errorf("threads %v of %d, %v", tids, pid, err)
	}
	end()
	if tids, err := procid.Threads(pid); !errors.Is(err, procid.ErrGone) {
		t.Errorf("threads %v of an ended process, %v", tids, err)
	}
}

func TestAppendNumbers(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"12", "self", "7x", "3"} {
		files.Write(t, dir+"/"+name, "", 0o600)
	}
	got, err := procid.AppendNumbers([]int{1}, dir)
	if slices.Sort(got); err != nil || !slices.Equal(got, []int{1, 3, 12}) {
		t.Errorf("numbers %v, %v", got, err)
	}
}
