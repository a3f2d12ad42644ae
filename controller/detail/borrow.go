// SPDX-License-Identifier: Apache-2.0

package detail

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
)

// errClosed says that the process has closed a descriptor meanwhile, or ended.
var errClosed = errors.New("descriptor is closed")

// borrow has use look at a file of the process through a descriptor of ours,
// which is closed at once afterwards. That it is the file which was listed is
// checked on what was obtained: the process may have closed it, and opened
// another one under the number. [errClosed] then.
func (p *process) borrow(e *entry, use func(fd int) error) error {
	fd := -1
	err := p.held.WithFD(func(pidfd int) (err error) {
		fd, err = unix.PidfdGetfd(pidfd, e.fd, 0) // close-on-exec
		return err
	})
	switch {
	case errors.Is(err, unix.EBADF), errors.Is(procid.GoneError(err), procid.ErrGone):
		return errClosed
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("descriptor %d: this needs the right to trace the process (its owner where kernel.yama.ptrace_scope allows, or root): pidfd_getfd: %w", e.fd, err)
	case err != nil:
		return fmt.Errorf("descriptor %d: pidfd_getfd: %w", e.fd, err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Ino != e.inode {
		return errClosed
	}
	return use(fd)
}

// trouble keeps what went wrong in a round, but for what has gone meanwhile.
type trouble struct {
	first error
	more  int
}

func (t *trouble) add(err error) {
	switch {
	case err == nil, errors.Is(err, errClosed):
	case t.first == nil:
		t.first = err
	default:
		t.more++
	}
}

// text is what people are told; "" if nothing went wrong.
func (t *trouble) text() string {
	switch {
	case t.first == nil:
		return ""
	case t.more == 0:
		return t.first.Error()
	}
	return fmt.Sprintf("%v, and %d more", t.first, t.more)
}
