// SPDX-License-Identifier: Apache-2.0

package outfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Replace writes a file beside the regular one at path, or beside the target of a link there, and then puts it
// in its place, with its mode and, where the kernel lets this process, its owner. After an error
// there is what was there before.
func Replace(path string, encode func(io.Writer) error) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	before, err := os.Stat(path)
	if err == nil && !before.Mode().IsRegular() {
		return errors.New("it is no regular file") // never replace a device
	}
	temp := filepath.Join(filepath.Dir(path), fmt.Sprintf(".%s.%d.%d.tmp", filepath.Base(path), os.Getpid(), time.Now().UnixNano()))
	if err := create(temp, before, encode); err != nil {
		return err
	}
	err = os.Rename(temp, path)
	if errors.Is(err, unix.EBUSY) { // a mount of its own, as a container's file may be
		err = fill(path, temp)
	} else if err == nil {
		return nil
	}
	return errors.Join(err, os.Remove(temp))
}

// create writes a new file, or leaves none. It gets the mode of the one before; if there was none,
// its mode is left to the umask.
func create(path string, before os.FileInfo, encode func(io.Writer) error) error {
	// O_EXCL: in a directory that others write to, the name may be a link.
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	if before != nil {
		err = resemble(f, before)
	}
	if err == nil {
		err = encode(f)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

// resemble gives a file owner and mode of another, before anything is in it. Where this process may not
// give it to the other's group, it is for no group.
func resemble(f *os.File, other os.FileInfo) error {
	perm := other.Mode().Perm()
	if st, ok := other.Sys().(*syscall.Stat_t); ok {
		switch err := f.Chown(int(st.Uid), int(st.Gid)); {
		case errors.Is(err, unix.EPERM):
			perm &^= 0o070
		case err != nil:
			return err
		}
	}
	return f.Chmod(perm)
}

// fill gives a file the content of another.
func fill(path, from string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, source)
	return errors.Join(err, f.Close())
}
