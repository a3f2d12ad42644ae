// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/inject"
	"github.com/attune-hpc/attune/internal/procid"
)

// maxErrno is the greatest error that a system call returns.
const maxErrno = 4095

// MapStopped has a stopped thread of the process map memory that is readable
// and executable. unix.EEXIST where something is mapped.
func MapStopped(ctx context.Context, process Process, start, size uint64) error {
	result, _, err := execute(ctx, process, mapCode(start, size), inject.ExecuteOptions{Anywhere: true})
	switch {
	case err != nil:
		return err
	case result == start:
		return nil
	case -result <= maxErrno:
		return fmt.Errorf("map %d bytes at %#x: %w", size, start, unix.Errno(-result))
	}
	return fmt.Errorf("map %d bytes at %#x: the kernel chose %#x", size, start, result)
}

// RewriteStopped writes code where from stands while all threads of the process
// are stopped, see [inject.Rewrite].
func RewriteStopped(ctx context.Context, process Process, address uint64, from, to []byte) error {
	held, err := procid.Hold(process.Identity())
	if err != nil {
		return err
	}
	_, err = inject.Rewrite(ctx, held, address, from, to)
	return errors.Join(err, held.Close())
}
