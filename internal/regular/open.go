// SPDX-License-Identifier: Apache-2.0

package regular

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
)

// KindError says that a file is of another kind than what was to be opened.
type KindError struct {
	// Kind is its bits of S_IFMT.
	Kind uint32
}

// Error implements error.
func (e *KindError) Error() string {
	names := map[uint32]string{
		unix.S_IFCHR: "a terminal or another device", unix.S_IFBLK: "a device", unix.S_IFIFO: "a pipe",
		unix.S_IFSOCK: "a socket", unix.S_IFDIR: "a directory", unix.S_IFREG: "a regular file",
	}
	if name, known := names[e.Kind]; known {
		return "is " + name
	}
	return "is no regular file"
}

// Open opens a regular file for reading. [*KindError], or an [*fs.PathError].
func Open(path string) (*os.File, error) { return OpenKind(path, unix.O_RDONLY, unix.S_IFREG) }

// OpenKind opens a file of one of some kinds, bits of S_IFMT, with flags as open(2) has them. It never
// waits for the other end of a pipe.
func OpenKind(path string, flags int, kinds ...uint32) (*os.File, error) {
	return open(path, flags, 0, ofKind(kinds...))
}

// OpenIf opens a file for reading of which check finds nothing wrong, while it is held by a descriptor
// of O_PATH; else it returns the error of check.
func OpenIf(path string, check func(held int) error) (*os.File, error) {
	return open(path, unix.O_RDONLY, 0, check)
}

// ofKind is a check for the kind of a file.
func ofKind(kinds ...uint32) func(held int) error {
	return func(held int) error {
		st, err := procid.FileAt(held) // who serves the file may never answer
		if err != nil {
			return err
		}
		if kind := st.Mode & unix.S_IFMT; !slices.Contains(kinds, kind) {
			return &KindError{kind}
		}
		return nil
	}
}

// OpenInPlace is Open for a path that has no symbolic link in it, and only for the file with that
// number: another one may have been put there.
func OpenInPlace(path string, inodes ...uint64) (*os.File, error) {
	return open(path, unix.O_RDONLY, unix.RESOLVE_NO_SYMLINKS, func(held int) error {
		var st unix.Stat_t
		if err := unix.Fstat(held, &st); err != nil {
			return err
		}
		if !slices.Contains(inodes, st.Ino) {
			return fmt.Errorf("%s: another file is there by now", path)
		}
		return ofKind(unix.S_IFREG)(held)
	})
}

func open(path string, flags int, resolve uint64, check func(held int) error) (*os.File, error) {
	held, err := hold(path, resolve)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(held)
	if err := check(held); err != nil {
		return nil, err
	}
	fd, err := again(func() (int, error) {
		return unix.Open(fmt.Sprintf("/proc/self/fd/%d", held), flags|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	})
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// hold returns a descriptor of a file that is not opened.
func hold(path string, resolve uint64) (int, error) {
	return again(func() (int, error) {
		if resolve == 0 {
			return unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
		}
		return unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: resolve})
	})
}

// again calls a system call until no signal interrupts it.
func again(call func() (int, error)) (n int, err error) {
	for {
		if n, err = call(); !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}
