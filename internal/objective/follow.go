// SPDX-License-Identifier: Apache-2.0

package objective

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// maxRead bounds what is read of a file at a time, 5 MB in a second: to look through more
	// would take the application's CPU time.
	maxRead = 256 << 10
	// maxLine bounds a line; of a longer one the beginning is looked at.
	maxLine = 16 << 10
)

// errSkipped says that more was written than is read.
var errSkipped = errors.New("more is written than is read, 5 MB/s: what was written meanwhile is not known")

// follower reads what is appended to a regular file.
type follower struct {
	pattern *regexp.Regexp
	file    *os.File // nil: it is not there yet
	path    string   // opened again where another file is there; empty: it never is
	offset  int64
	line    []byte // the beginning of a line that is not complete
	buffer  []byte
}

// openFor opens a regular file for reading, beside whoever writes it. Nothing else is opened,
// not for a moment: to open a pipe or a terminal may be noticed at its other end.
func openFor(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err == nil {
		err = regular(info)
	}
	if err != nil {
		return nil, cannotOpen(err)
	}
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, cannotOpen(err)
	}
	if info, err = file.Stat(); err == nil {
		err = regular(info) // another one may be there by now
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// cannotOpen leaves the path out of an error: whoever says it has a name for the file.
func cannotOpen(err error) error {
	var at *os.PathError
	if errors.As(err, &at) {
		return fmt.Errorf("cannot be read: %w", at.Err)
	}
	return err
}

// regular refuses what is no regular file.
func regular(info os.FileInfo) error {
	if info.Mode().IsRegular() {
		return nil
	}
	return errors.New("is " + sort(info.Mode()))
}

// sort says in words what a file is that is not regular.
func sort(mode os.FileMode) string {
	switch {
	case mode&os.ModeCharDevice != 0:
		return "a terminal or another device"
	case mode&os.ModeNamedPipe != 0:
		return "a pipe"
	case mode&os.ModeSocket != 0:
		return "a socket"
	case mode.IsDir():
		return "a directory"
	}
	return "no regular file"
}

// read returns the numbers in the lines that have been completed since the last call, 1 for each match
// without, and when the last one was. It does not look farther than maxRead.
func (f *follower) read(since, now time.Time) (found []float64, at time.Time, err error) {
	if err := f.reopen(); err != nil || f.file == nil {
		return nil, now, err
	}
	info, err := f.file.Stat()
	if err != nil {
		return nil, now, err
	}
	if info.Size() < f.offset { // it was emptied
		f.offset, f.line = 0, nil
	}
	if info.Size()-f.offset > maxRead {
		f.offset, f.line = info.Size(), nil
		return nil, now, errSkipped
	}
	if f.buffer == nil {
		f.buffer = make([]byte, maxRead)
	}
	n, err := f.file.ReadAt(f.buffer[:info.Size()-f.offset], f.offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, now, err
	}
	f.offset += int64(n)
	if at = info.ModTime(); at.Before(since) || at.After(now) { // by another clock
		at = now
	}
	return f.find(f.buffer[:n]), at, nil
}

// reopen opens the file that is at the path, if another one is.
func (f *follower) reopen() error {
	if f.path == "" {
		return nil
	}
	info, err := os.Stat(f.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil // not yet, or in the middle of a rotation
	}
	if err != nil {
		return err
	}
	if f.file != nil {
		if own, err := f.file.Stat(); err != nil || os.SameFile(own, info) {
			return err
		}
	}
	file, err := openFor(f.path)
	if err != nil {
		return err
	}
	f.close()
	f.file, f.offset, f.line = file, 0, nil
	return nil
}

// find looks for the pattern in all lines that are complete, and keeps what is not. A carriage
// return ends a line, too: progress is written so.
func (f *follower) find(text []byte) (found []float64) {
	for len(text) > 0 {
		end := bytes.IndexAny(text, "\r\n")
		part := text
		if end >= 0 {
			part = text[:end]
		}
		if room := maxLine - len(f.line); room > 0 {
			f.line = append(f.line, part[:min(room, len(part))]...)
		}
		if end < 0 {
			return found
		}
		found = append(found, f.match(f.line)...)
		f.line, text = f.line[:0], text[end+1:]
	}
	return found
}

// match returns the numbers in a line, and 1 for each match of a pattern without one. What is
// no number does not count.
func (f *follower) match(line []byte) (found []float64) {
	for _, groups := range f.pattern.FindAllSubmatch(line, -1) {
		if len(groups) == 1 {
			found = append(found, 1)
			continue
		}
		if number, ok := parseNumber(string(groups[1])); ok {
			found = append(found, number)
		}
	}
	return found
}

// parseNumber reads a finite number.
func parseNumber(text string) (float64, bool) {
	number, err := strconv.ParseFloat(text, 64)
	return number, err == nil && number-number == 0
}

// close closes the file.
func (f *follower) close() {
	if f.file != nil {
		_ = f.file.Close() // read only
		f.file = nil
	}
}
