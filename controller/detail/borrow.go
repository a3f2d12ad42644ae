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

// borrow has use look at a file of the process through a descriptor of ours, which is closed
// at once afterwards. [errClosed] if the process has closed it meanwhile.
func (p *process) borrow(e *entry, use func(fd int) error) error {
	fd, err := p.held.Duplicate(e.fd, e.isFile)
	switch {
	case errors.Is(err, procid.ErrOtherFile), errors.Is(err, procid.ErrGone):
		return errClosed
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return fmt.Errorf("%w: this needs the right to trace the process (its owner where kernel.yama.ptrace_scope allows, or root)", err)
	case err != nil:
		return err
	}
	defer unix.Close(fd)
	return use(fd)
}

// isFile says whether a file is the one that was listed. A file system of a user's gives its
// files any inode number, but no type that its files do not have.
func (e *entry) isFile(st unix.Stat_t) bool {
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
