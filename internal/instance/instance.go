// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrTaken is returned where another process has the lock.
var ErrTaken = errors.New("another one runs")

// Lock makes a file that one process at a time can have, with its id in it, and
// that is free again when the process ends in whatever way. The caller keeps the
// result open for as long as it runs. The error is ErrTaken and names the process
// that has it.
func Lock(path string) (io.Closer, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, errors.Join(fmt.Errorf("%w: %s has %s", ErrTaken, holder(file), path), file.Close())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), file.Close())
	}
	// For people only: on a full disk the lock holds without.
	_ = file.Truncate(0)
	_, _ = file.WriteAt([]byte(strconv.Itoa(os.Getpid())), 0)
	return file, nil
}

// holder is who has written its id, for people.
func holder(file *os.File) string {
	const longest = 32
	id := make([]byte, longest)
	n, _ := file.Read(id)
	if n == 0 {
		return "a process"
	}
	return "process " + strings.TrimSpace(string(id[:n]))
}
