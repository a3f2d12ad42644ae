// SPDX-License-Identifier: Apache-2.0

package targets_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/testing/targets"
)

// While a program is being written nobody forks: a child would have it open, and nobody
// could execute it.
func TestWriteProgram(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe") // which is written to for as long as it takes to read it
	if err := unix.Mkfifo(path, 0o700); err != nil {
		t.Fatal(err)
	}
	program := bytes.Repeat([]byte{1}, 1<<20) // more than a pipe holds
	written := make(chan error, 1)
	go func() { written <- targets.WriteProgram(path, program) }()
	pipe, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	first := make([]byte, 1)
	if _, err := pipe.Read(first); err != nil {
		t.Fatal(err)
	}
	if syscall.ForkLock.TryLock() {
		syscall.ForkLock.Unlock()
		t.Error("others may fork")
	}
	rest, err := io.ReadAll(pipe)
	if err != nil || !bytes.Equal(append(first, rest...), program) {
		t.Errorf("%d bytes, %v", len(rest)+1, err)
	}
	if err := <-written; err != nil {
		t.Error(err)
	}
}
