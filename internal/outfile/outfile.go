// SPDX-License-Identifier: Apache-2.0

package outfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrNoReader says that a FIFO was named which nobody reads.
var ErrNoReader = errors.New("nobody reads it, start its reader first")

// mode is left to the umask: a result is for its owner's group as any output
// file is.
const mode = 0o666

// Open opens path for writing, with flags beside os.O_WRONLY. It does not wait
// for the reader of a FIFO, see [ErrNoReader]. "-" is standard output. A name of a descriptor of this
// process (/dev/stdout, /dev/fd/3, which a shell's >(...) becomes too) gives
// that very descriptor again, so that what others write there is not
// overwritten, whatever becomes of the original. The caller closes the file.
func Open(path string, flags int) (*os.File, error) {
	if fd, ok := descriptor(path); ok {
		again, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, firstFree)
		if err != nil {
			return nil, &os.PathError{Op: "open", Path: path, Err: err}
		}
		return os.NewFile(uintptr(again), path), nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY|unix.O_NONBLOCK|flags, mode)
	if errors.Is(err, unix.ENXIO) {
		return nil, fmt.Errorf("open %s: %w", path, ErrNoReader)
	}
	return f, err
}

// Empty empties a file from Open, if it is a regular one that was opened by a name of its own.
func Empty(f *os.File) error {
	if _, shared := descriptor(f.Name()); shared {
		return nil
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	return f.Truncate(0)
}

// firstFree keeps copies away from the standard streams.
const firstFree = 3

// Stream says whether path names something that is written to as it is (a
// descriptor, pipe or device), not a regular file that is made or replaced.
func Stream(path string) bool {
	if _, ok := descriptor(path); ok {
		return true
	}
	info, err := os.Stat(path)
	return err == nil && !info.Mode().IsRegular() && !info.IsDir()
}

// descriptor returns the descriptor of this process that path is a name of.
func descriptor(path string) (fd int, ok bool) {
	switch path = filepath.Clean(path); path {
	case "-", "/dev/stdout":
		return unix.Stdout, true
	case "/dev/stderr":
		return unix.Stderr, true
	}
	for _, dir := range []string{"/dev/fd/", "/proc/self/fd/"} {
		if name, below := strings.CutPrefix(path, dir); below {
			fd, err := strconv.Atoi(name)
			return fd, err == nil && fd >= 0
		}
	}
	return 0, false
}
