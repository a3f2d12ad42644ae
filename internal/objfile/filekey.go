// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

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
