// SPDX-License-Identifier: Apache-2.0

package procmem

import (
	"errors"
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

func TestReadWriteOwnMemory(t *testing.T) {
	word := new(uint64)
	*word = 0x1122334455667788
	address := uint64(uintptr(unsafe.Pointer(word)))

	got := make([]byte, 8)
	if err := Read(os.Getpid(), address, got); err != nil {
		t.Fatal(err)
	}
	if got[0] != 0x88 || got[7] != 0x11 {
		t.Errorf("read % x", got)
	}
	if err := Write(os.Getpid(), address, []byte{1, 0, 0, 0, 0, 0, 0, 0}); err != nil {
		t.Fatal(err)
	}
	if *word != 1 {
		t.Errorf("word = %d after writing 1", *word)
	}
}

func TestErrors(t *testing.T) {
	if err := Read(os.Getpid(), 8, make([]byte, 8)); !errors.Is(err, unix.EFAULT) {
		t.Errorf("unmapped address: %v", err)
	}
	if err := Write(1<<22+1, 8, make([]byte, 8)); !errors.Is(err, unix.ESRCH) {
		t.Errorf("no such process: %v", err)
	}
	if err := Read(os.Getpid(), 8, nil); err != nil {
		t.Errorf("empty read: %v", err)
	}
}
