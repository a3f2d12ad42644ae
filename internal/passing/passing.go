// SPDX-License-Identifier: Apache-2.0

// Package passing tells errors that pass from errors that stay. It has no state.
package passing

import (
	"errors"
	"slices"

	"golang.org/x/sys/unix"
)

// Error says whether an error is of a machine that is short of something, or of an
// interruption: what failed may be tried again.
func Error(err error) bool {
	errnos := []unix.Errno{
		unix.EAGAIN, unix.EMFILE, unix.ENFILE, unix.ENOBUFS, unix.ENOMEM, unix.EINTR, unix.ECONNABORTED,
	}
	return slices.ContainsFunc(errnos, func(errno unix.Errno) bool { return errors.Is(err, errno) })
}
