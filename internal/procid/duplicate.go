// SPDX-License-Identifier: Apache-2.0

package procid

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// ErrOtherFile means that a descriptor of a process is closed, or is another file's than the
// one that is meant.
var ErrOtherFile = errors.New("descriptor is closed or another file's")

// Duplicate takes a descriptor of ours, close-on-exec, for the file that a descriptor of the
// process has; isFile says whether a file is the one that is meant. [ErrOtherFile] if it is
// not, [ErrGone] if the process has ended; else the kernel's error. The caller closes it at
// once after use: what the process closes meanwhile would stay open.
//
// The file is looked at before, too. To close a duplicate asks the server of its file, who may
// never answer: that is possible only where the process exchanges the file between the look
// and the call.
func (p *Process) Duplicate(number int, isFile func(unix.Stat_t) bool) (fd int, err error) {
	st, err := FileOf(fmt.Sprintf("/proc/%d/fd/%d", p.PID(), number))
	switch {
	case errors.Is(err, unix.ENOENT) || err == nil && !isFile(st):
		return -1, fmt.Errorf("descriptor %d: %w", number, ErrOtherFile)
	case err != nil:
		return -1, fmt.Errorf("descriptor %d: %w", number, GoneError(err))
	}
	err = p.WithFD(func(pidfd int) (err error) {
		fd, err = unix.PidfdGetfd(pidfd, number, 0)
		return err
	})
	switch {
	case errors.Is(err, unix.EBADF):
		return -1, fmt.Errorf("descriptor %d: %w", number, ErrOtherFile)
	case err != nil:
		return -1, fmt.Errorf("descriptor %d: pidfd_getfd: %w", number, GoneError(err))
	}
	if st, err := FileAt(fd); err != nil || !isFile(st) {
		unix.Close(fd)
		return -1, errors.Join(err, fmt.Errorf("descriptor %d: %w", number, ErrOtherFile))
	}
	return fd, nil
}
