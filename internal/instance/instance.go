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
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		other, _ := io.ReadAll(io.LimitReader(file, 32)) // empty: somebody whom we do not know
		return nil, errors.Join(fmt.Errorf("%w: process %s has %s", ErrTaken, strings.TrimSpace(string(other)), path), file.Close())
	}
	err = file.Truncate(0)
	if err == nil {
		_, err = file.WriteAt([]byte(strconv.Itoa(os.Getpid())), 0)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), file.Close())
	}
	return file, nil
}
