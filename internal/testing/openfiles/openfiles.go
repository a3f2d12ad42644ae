// SPDX-License-Identifier: Apache-2.0

// Package openfiles tells tests what files their process has open.
package openfiles

import (
	"io"
	"os"
	"runtime"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/patience"
)

// Count is the number of descriptors that this process has.
func Count(t testing.TB) int {
	t.Helper()
	return len(List(t))
}

// List returns what the descriptors of this process lead to. What earlier tests have left
// to the garbage collector, which closes it at any time, is closed before.
func List(t testing.TB) (all []string) {
	t.Helper()
	for range 2 { // files of the first time are closed in any order
		collect(t)
	}
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		target, _ := os.Readlink("/proc/self/fd/" + entry.Name()) // that of the list is closed
		all = append(all, target)
	}
	return all
}

// collect returns when files that nobody could reach have been closed.
func collect(t testing.TB) {
	t.Helper()
	own, lost, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	_ = lost // it is reached no more
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_, _ = io.Copy(io.Discard, own)
	}()
	patience.Until(t, "a file to be closed that nobody can reach", func() bool {
		runtime.GC()
		select {
		case <-closed:
			return true
		default:
			return false
		}
	})
}
