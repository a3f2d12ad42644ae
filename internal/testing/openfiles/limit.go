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
	for range free + 1 {
		file, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		last = uint64(file.Fd())
	}
	return last
}
