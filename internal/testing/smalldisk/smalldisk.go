// SPDX-License-Identifier: Apache-2.0

// Package smalldisk has disks that tests fill. It needs root.
package smalldisk

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/testing/patience"
)

// Mount mounts a disk at a directory until the test ends, with options of tmpfs such as
// "size=16m". Nobody may have a file open there for long then.
func Mount(tb testing.TB, dir, options string) {
	tb.Helper()
	if err := unix.Mount("attune", dir, "tmpfs", 0, options); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		defer func() { _ = unix.Unmount(dir, unix.MNT_DETACH) }() // where somebody uses it for good
		patience.Until(tb, "the end of all use of "+dir, func() bool { return unix.Unmount(dir, 0) == nil })
	})
}

// Fill leaves no room on the disk of a directory, until makeRoom is called.
func Fill(tb testing.TB, dir string) (makeRoom func()) {
	tb.Helper()
	filler := filepath.Join(dir, "filler")
	file, err := os.Create(filler)
	if err != nil {
		tb.Fatal(err)
	}
	defer file.Close()
	for _, size := range []int{1 << 16, 1} { // then the last page
		for err = nil; err == nil; {
			_, err = file.Write(make([]byte, size))
		}
		if !errors.Is(err, unix.ENOSPC) {
			tb.Fatal(err)
		}
	}
	return func() {
		if err := os.Remove(filler); err != nil {
			tb.Fatal(err)
		}
	}
}
