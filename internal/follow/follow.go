// SPDX-License-Identifier: Apache-2.0

// Package follow reads what is appended to regular files, beside whoever writes them: nothing
// else is opened, and what is written is neither waited for nor held up. A [File] and a
// [Splitter] belong to one goroutine.
package follow

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/regular"
)

// File is a file that grows.
type File struct {
	file   *os.File // nil: it is not there yet
	path   string   // opened again where another file is there; empty: it never is
	offset int64
	left   bool // another file is there, and what was left of this one is read
}

// New follows an open file from its present end on; it takes the file over.
func New(file *os.File) (*File, error) {
	var st unix.Stat_t
	err := unix.Fstat(int(file.Fd()), &st)
	if kind := st.Mode & unix.S_IFMT; err == nil && kind != unix.S_IFREG {
		err = &regular.KindError{Kind: kind}
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &File{file: file, offset: st.Size}, nil
}

// Path follows what is at a path, from its present end on if it is there already, and whatever
// takes its place from its beginning. An error if what is there cannot be followed.
func Path(path string) (*File, error) {
	file, err := Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return &File{path: path}, nil
	}
	if err != nil {
		return nil, err
	}
	f, err := New(file)
	if err == nil {
		f.path = path
	}
	return f, err
}

// Open opens a regular file for reading, as [regular.Open] does. The error does not name the path.
func Open(path string) (*os.File, error) {
	file, err := regular.Open(path)
	if err != nil {
		return nil, cannotOpen(err)
	}
	return file, nil
}

// cannotOpen leaves the path out of an error: whoever says it has a name for the file.
func cannotOpen(err error) error {
	if at, ok := errors.AsType[*os.PathError](err); ok {
		return fmt.Errorf("cannot be read: %w", at.Err)
	}
	return err
}

// Same says whether two follow the same file.
func (f *File) Same(other *File) bool {
	if f.file == nil || other.file == nil {
		return f.path != "" && f.path == other.path
	}
	one, err := f.file.Stat()
	two, err2 := other.file.Stat()
	return err == nil && err2 == nil && os.SameFile(one, two)
}

// News is what was written to a file since it was read last.
type News struct {
	// Left is how many bytes there are to be read.
	Left int64
	// Anew says that the file was emptied, or is another one.
	Anew bool
	// More says that another file has taken its place, at which to look next.
	More bool
	// Written is when the last of it was written, by the file system's clock.
	Written time.Time
}

// Look looks for what is new: in what was followed, and when that is read, in another file at the
// path. Nothing is new of one that is not there.
func (f *File) Look() (n News, err error) {
	another, err := f.replaced()
	if err != nil || f.file == nil && !another {
		return News{}, err
	}
	if f.file != nil {
		n, err = f.news()
		if n.More = another; err != nil || !another || n.Left > 0 && !f.left { // once: it may go on to grow
			f.left = another
			return n, err
		}
	}
	file, err := Open(f.path)
	if err != nil {
		return News{}, err
	}
	f.Close()
	f.file, f.offset, f.left = file, 0, false
	n, err = f.news()
	n.Anew = true
	return n, err
}

// news is what is new in the open file.
func (f *File) news() (n News, err error) {
	info, err := f.file.Stat()
	if err != nil {
		return News{}, err
	}
	if info.Size() < f.offset {
		f.offset, n.Anew = 0, true
	}
	n.Left, n.Written = info.Size()-f.offset, info.ModTime()
	return n, nil
}

// Read reads on, as much as there is and fits.
func (f *File) Read(buffer []byte) (int, error) {
	n, err := f.file.ReadAt(buffer, f.offset)
	f.offset += int64(n)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

// Skip passes over so many bytes.
func (f *File) Skip(bytes int64) { f.offset += bytes }

// replaced says whether another file is at the path.
func (f *File) replaced() (bool, error) {
	if f.path == "" {
		return false, nil
	}
	info, err := os.Stat(f.path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil // not yet, or in the middle of a rotation
	}
	if err != nil || f.file == nil {
		return err == nil, err
	}
	own, err := f.file.Stat()
	return err == nil && !os.SameFile(own, info), err
}

// Close closes the file.
func (f *File) Close() {
	if f.file != nil {
		_ = f.file.Close() // read only
		f.file = nil
	}
}

// Splitter makes lines of what is read. A carriage return ends a line, too: progress is
// written so.
type Splitter struct {
	// Most bounds a line, bytes: of a longer one the beginning is handed on.
	Most int
	line []byte // the beginning of a line that is not complete
}

// Split calls each for every line that is complete by now. The line is valid until each
// returns.
func (s *Splitter) Split(text []byte, each func(line []byte)) {
	for len(text) > 0 {
		end := bytes.IndexAny(text, "\r\n")
		part := text
		if end >= 0 {
			part = text[:end]
		}
		if room := s.Most - len(s.line); room > 0 {
			s.line = append(s.line, part[:min(room, len(part))]...)
		}
		if end < 0 {
			return
		}
		each(s.line)
		s.line, text = s.line[:0], text[end+1:]
	}
}

// Reset forgets the line that is not complete.
func (s *Splitter) Reset() { s.line = nil }
