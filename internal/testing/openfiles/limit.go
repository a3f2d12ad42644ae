// SPDX-License-Identifier: Apache-2.0

package openfiles

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// Limit runs f while this process can open no more than so many files.
func Limit(t testing.TB, free int, f func()) {
	t.Helper()
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	short := unix.Rlimit{Cur: firstBeyond(t, free), Max: limit.Max}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &short); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
			t.Fatal(err)
		}
	}()
	f()
}

// firstBeyond returns the descriptor that a file gets when so many more have been opened.
func firstBeyond(t testing.TB, free int) (last uint64) {
	t.Helper()
	files := make([]*os.File, free+1)
	for i := range files {
		file, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		files[i], last = file, uint64(file.Fd())
	}
	for _, file := range files {
		_ = file.Close() // nothing was written
	}
	return last
}
