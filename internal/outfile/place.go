// SPDX-License-Identifier: Apache-2.0

package outfile

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Place is where a document goes that is written when there is all of it. Until then
// whatever is there stays as it is. The zero value is nowhere.
type Place struct {
	file   string   // to be made or replaced, absolute; empty: none
	stream *os.File // that is written to as it is instead; nil: none
	empty  bool     // it is a regular file, which is emptied first
}

// OpenPlace opens what is written to as it is (see [Stream]), or checks that a file can be
// made or replaced; an empty path is nowhere. A file is not replaced, but emptied
// and written when the document is there, where that is the only way to keep what it is: somebody
// else's, one of several hard links, the target of a link that is not there yet, or in a directory
// that this process may not write to. The caller closes the place.
func OpenPlace(path string) (p Place, err error) {
	if path == "" {
		return p, nil
	}
	if Stream(path) {
		p.stream, err = Open(path, 0)
		return p, err
	}
	if p.file, err = filepath.Abs(path); err != nil {
		return p, err
	}
	if real, err := filepath.EvalSymlinks(p.file); err == nil {
		p.file = real
	}
	replaced, err := replaceable(p.file)
	if err != nil {
		return Place{}, fmt.Errorf("%s: %w", path, err)
	}
	if !replaced {
		p = Place{empty: true}
		p.stream, err = Open(path, os.O_CREATE)
	}
	return p, err
}

// replaceable says whether a file may be replaced by another, or made. It fails where neither that nor
// writing to it can be done.
func replaceable(path string) (bool, error) {
	makes := unix.Access(filepath.Dir(path), unix.W_OK)
	var st unix.Stat_t
	switch err := unix.Lstat(path, &st); {
	case err != nil:
		return true, makes // what is wrong with the path is wrong with the directory
	case st.Mode&unix.S_IFMT == unix.S_IFDIR:
		return false, unix.EISDIR
	case st.Mode&unix.S_IFMT == unix.S_IFLNK:
		return false, nil // to nothing
	}
	if err := unix.Access(path, unix.W_OK); err != nil {
		return false, err
	}
	euid := uint32(os.Geteuid())
	return makes == nil && st.Nlink == 1 && (euid == 0 || st.Uid == euid), nil
}

// Named says whether the document goes anywhere.
func (p *Place) Named() bool { return p.stream != nil || p.file != "" }

// Write writes the document: a file has all of it then, or what it had before.
func (p *Place) Write(encode func(io.Writer) error) error {
	switch {
	case p.file != "":
		if err := Replace(p.file, encode); err != nil {
			return fmt.Errorf("write %s: %w; give a path in a writable directory", p.file, err)
		}
		return nil
	case p.empty:
		if err := p.stream.Truncate(0); err != nil {
			return err
		}
	case p.stream == nil:
		return nil
	}
	return encode(p.stream)
}

// Close closes what is open. Its error may be the only one by which a full disk is told.
func (p *Place) Close() error {
	if p.stream == nil {
		return nil
	}
	return p.stream.Close()
}
