// SPDX-License-Identifier: Apache-2.0

package sample

import (
	"fmt"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
)

// maxFileBytes is more than any file that is read here has; the longest is
// status, with its CPU and memory node masks.
const maxFileBytes = 16384

// procFile is a file of /proc that is read again and again. As long as the
// budget allows it stays open, which also ties it to the task: a kept
// descriptor never shows another task that got the same number.
type procFile struct {
	path string
	fd   int // -1: not open
}

func newProcFile(path string) procFile { return procFile{path: path, fd: -1} }

// budget counts descriptors that may still be kept.
type budget struct{ left atomic.Int64 }

func (b *budget) take() bool {
	if b.left.Add(-1) >= 0 {
		return true
	}
	b.left.Add(1)
	return false
}

// read reads the whole file into buffer. [procid.ErrGone] if the task has
// ended.
func (f *procFile) read(files *budget, buffer []byte) ([]byte, error) {
	fd, keep := f.fd, true
	if fd < 0 {
		var err error
		if fd, err = unix.Open(f.path, unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
			return nil, fmt.Errorf("%s: %w", f.path, procid.GoneError(err))
		}
		if keep = files.take(); keep {
			f.fd = fd
		}
	}
	n, err := readAll(fd, buffer)
	if !keep {
		unix.Close(fd)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.path, procid.GoneError(err))
	}
	return buffer[:n], nil
}

// readAll reads from the start. The kernel hands out most of these files in
// one piece; a status file with long masks comes in two.
func readAll(fd int, buffer []byte) (int, error) {
	n := 0
	for n < len(buffer) {
		more, err := unix.Pread(fd, buffer[n:], int64(n))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return 0, err
		}
		if n += more; more == 0 || n < shortFile {
			break
		}
	}
	return n, nil
}

// shortFile is a length below which a file has come whole: the kernel fills a
// page before it begins a second piece.
const shortFile = 4000

func (f *procFile) close(files *budget) {
	if f.fd >= 0 {
		unix.Close(f.fd)
		f.fd = -1
		files.left.Add(1)
	}
}
