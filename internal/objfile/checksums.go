// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// checksums remembers those of the files that a .gnu_debuglink named.
type checksums struct {
	mu    sync.Mutex // guards known; held while a file is read
	known map[fileKey]uint32
}

// of is the checksum of a file, computed if it is not known.
func (c *checksums) of(key fileKey, checksum func() (uint32, error)) (uint32, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if sum, ok := c.known[key]; ok {
		return sum, nil
	}
	const most = 16
	sum, err := checksum()
	if err == nil {
		if len(c.known) >= most || c.known == nil {
			c.known = make(map[fileKey]uint32)
		}
		c.known[key] = sum
	}
	return sum, err
}

// fileKey tells files and versions of a file apart.
type fileKey struct {
	device, inode    uint64
	size             int64
	modified, change unix.Timespec
}

func keyOf(file *os.File) (fileKey, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &st); err != nil {
		return fileKey{}, fmt.Errorf("stat: %w", err)
	}
	return fileKey{uint64(st.Dev), st.Ino, st.Size, st.Mtim, st.Ctim}, nil
}
