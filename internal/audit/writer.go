// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// writer is the file. It belongs to one goroutine.
type writer struct {
	path string
	file *os.File // nil: it could not be opened again
	size int64
}

// open opens the file, or makes it, and ends a line that was cut off. A link is
// not followed: it would let somebody else choose the file.
func (w *writer) open() error {
	file, err := os.OpenFile(w.path, os.O_RDWR|os.O_APPEND|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file", w.path)
	}
	if err == nil {
		w.size, err = endLine(file, info.Size())
	}
	if err == nil {
		err = syncDirectory(filepath.Dir(w.path))
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	w.file = file
	return nil
}

// full says whether an error means that the disk takes nothing for now: no room, none for
// this user, or none for the file.
func full(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.EFBIG)
}

// endLine makes what is written next begin a line, and returns the file's size.
func endLine(file *os.File, size int64) (int64, error) {
	if size == 0 {
		return 0, nil
	}
	last := make([]byte, 1)
	if _, err := file.ReadAt(last, size-1); err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	if last[0] == '\n' {
		return size, nil
	}
	n, err := file.Write([]byte{'\n'})
	return size + int64(n), err
}

// append writes lines and makes them durable. It returns those that may not be
// on disk, from the start of the first: what a full disk has cut off is written
// again as a whole, and what may be lost in spite of its having been written.
func (w *writer) append(lines []byte) ([]byte, error) {
	if err := w.follow(); err != nil {
		return lines, err
	}
	n, err := w.file.Write(lines)
	w.size += int64(n)
	// Also of a part: the file may be another one when the rest is written.
	if unsure := w.file.Sync(); unsure != nil {
		return lines, errors.Join(err, unsure, w.close())
	}
	if err != nil {
		return lines[written(lines, n):], errors.Join(err, w.close())
	}
	return nil, nil
}

// written is how many bytes of lines are there as whole ones when n were taken.
// Opening the file again ends what was cut off: a line that lacks only its end
// is whole then, and written again it would be there twice.
func written(lines []byte, n int) int {
	return bytes.LastIndexByte(lines[:min(n+1, len(lines))], '\n') + 1
}

// follow opens the file again if it is not the one of that name any more.
func (w *writer) follow() error {
	if w.file != nil {
		here, err := w.file.Stat()
		if err != nil {
			return err
		}
		there, err := os.Lstat(w.path)
		if err == nil && os.SameFile(here, there) {
			w.size = there.Size() // logrotate's copytruncate
			return nil
		}
		if err := w.close(); err != nil {
			return err
		}
	}
	return w.open()
}

func (w *writer) close() error {
	if w.file == nil {
		return nil
	}
	err := w.file.Close()
	w.file = nil
	return err
}

// rotated is how the times in names of old files are written. They sort.
const rotated = "20060102T150405.000Z"

// rotate renames the file, and returns how it is called now.
func (w *writer) rotate(now time.Time) (string, error) {
	if err := w.close(); err != nil {
		return "", err
	}
	name := w.path + "." + now.UTC().Format(rotated)
	if _, err := os.Lstat(name); err == nil {
		return "", fmt.Errorf("%s: %w", name, os.ErrExist)
	}
	if err := os.Rename(w.path, name); err != nil {
		return "", err
	}
	return name, w.open()
}

// old are the files that rotate has renamed, the oldest first.
func (w *writer) old() ([]string, error) {
	entries, err := os.ReadDir(filepath.Dir(w.path))
	if err != nil {
		return nil, err
	}
	prefix := filepath.Base(w.path) + "."
	var names []string
	for _, entry := range entries {
		if when, ok := strings.CutPrefix(entry.Name(), prefix); ok {
			if _, err := time.Parse(rotated, when); err == nil {
				names = append(names, filepath.Join(filepath.Dir(w.path), entry.Name()))
			}
		}
	}
	slices.Sort(names)
	return names, nil
}

// syncDirectory makes the file's name durable.
func syncDirectory(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}
