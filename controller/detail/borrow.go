// SPDX-License-Identifier: Apache-2.0

package detail

import (
	"errors"
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
)

// errClosed says that the process has closed a descriptor meanwhile, or ended.
var errClosed = errors.New("descriptor is closed")

// borrow has use look at a file of the process through a descriptor of ours,
// which is closed at once afterwards. That it is the file which was listed is
// checked on what was obtained: the process may have closed it, and opened
// another one under the number. [errClosed] then. It is looked at before, too: to
// close what was obtained asks the server of its file, who may never answer. That is
// possible still where the process exchanges the file between the look and the call.
func (p *process) borrow(e *entry, use func(fd int) error) error {
	if st, err := procid.FileOf(p.table.path + "/" + strconv.Itoa(e.fd)); err != nil || !e.is(st) {
		return errClosed
	}
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
	if st, err := procid.FileAt(fd); err != nil || !e.is(st) {
		return errClosed
	}
	return use(fd)
}

// is says whether a file is the one that was listed. A file system of a user's gives its
// files any inode number, but no type that its files do not have.
func (e *entry) is(st unix.Stat_t) bool {
	kind := uint32(unix.S_IFSOCK)
	if e.pipe {
		kind = unix.S_IFIFO
	}
	return st.Ino == e.inode && st.Mode&unix.S_IFMT == kind
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
