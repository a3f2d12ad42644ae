// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"errors"
	"sync"
	"weak"
)

// keptTable is a table of a file for as long as the garbage collector leaves it: a
// hundred names that are looked up one after another are looked up in one table, and
// none stays in memory for long. One that the file has wrong is not read again as long
// as the file is open.
type keptTable[T any] struct {
	mu    sync.Mutex // guards what follows; held while it is read
	table weak.Pointer[T]
	err   error
}

// get returns the table, read anew if it has gone.
func (k *keptTable[T]) get(read func() (*T, error)) (*T, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if t := k.table.Value(); t != nil || k.err != nil {
		return t, k.err
	}
	t, err := read()
	switch {
	case err == nil:
		k.table = weak.Make(t)
	case isFinal(err):
		k.err = err
	}
	return t, err
}

// isFinal says that an error is the fault of the file, of which another attempt changes
// nothing but the time that it takes.
func isFinal(err error) bool { return errors.Is(err, ErrCorrupt) || errors.Is(err, ErrUnsupported) }

// failure remembers why the debug information of a file cannot be read. A Cache knows files
// by device, inode, size and times, so another version of one is tried anew.
type failure struct {
	mu  sync.Mutex // a leaf lock
	err error
}

// GivenUp is why the debug information could not be read before; nil: nobody tried, or
// it could.
func (f *failure) GivenUp() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// GiveUp returns the error, and remembers it if it is the file's fault
// ([ErrCorrupt], [ErrUnsupported]): to find that out again may take seconds.
func (f *failure) GiveUp(err error) error {
	if isFinal(err) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.err = err
	}
	return err
}
