// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"bytes"
	"os"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
)

// ExecutedAs returns the path that execve(2) was given for the program of a process, "" where
// it cannot be read. The kernel keeps it in the process' own memory, which is opened to be
// read only: helpers (package readers) may do no more.
func ExecutedAs(pid int) string {
	memory, err := os.Open(procid.Path(pid, "mem"))
	if err != nil {
		return ""
	}
	defer memory.Close()
	address, err := procid.Auxiliary(pid, procid.AuxExecuted) // if it is the next program's, the memory has gone
	if err != nil {
		return ""
	}
	text := make([]byte, unix.PathMax)
	n, _ := memory.ReadAt(text, int64(address)) // it lies at the end of the stack: less is no error
	path, _, whole := bytes.Cut(text[:n], []byte{0})
	if !whole {
		return ""
	}
	return string(path)
}
