// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"bytes"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// commits says whether this node promises no more memory than it has. A page of a file
// is accounted for there when it is used first, and whoever does so then is killed by
// SIGBUS if there is none left. So files are small, and have all of their memory from the
// start.
var commits = sync.OnceValue(func() bool { return readCommits("/proc/sys/vm/overcommit_memory") })

func readCommits(path string) bool {
	text, err := os.ReadFile(path)
	return err == nil && string(bytes.TrimSpace(text)) == "2"
}

// commit takes all memory of a file.
func commit(file *os.File, size int64) error {
	if err := unix.Fallocate(int(file.Fd()), 0, 0, size); err != nil {
		return fmt.Errorf("memory file of %d bytes, all of which has to be there (vm.overcommit_memory is 2): %w", size, err)
	}
	return nil
}
