// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
)

// ErrNoDebugFile says that a file has no separate debug file on this machine.
var ErrNoDebugFile = errors.New("no separate debug file")

// maxDebugFileBytes bounds the file whose checksum is computed, at about one
// second a gigabyte.
const maxDebugFileBytes = 2 << 30

// DebugFile opens the separate debug file: one that has the same build id, by
// build id or by .gnu_debuglink, or else one that .gnu_debuglink names and
// whose checksum (CRC-32) is right. The caller closes it. [ErrNoDebugFile]
// tells where a wrong one was found.
func (f *File) DebugFile() (*File, error) {
	var wrong []error
	id := f.BuildID()
	for _, path := range f.debugDirs.byBuildID(id) {
		debug, err := openDebug(path, func(d *File) error { return sameBuildID(d, id) })
		if err == nil {
			return debug, nil
		}
		wrong = appendWrong(wrong, err)
	}
	link, sum, err := f.debugLink()
	if err != nil {
		return nil, errors.Join(append([]error{fmt.Errorf("%w of %s", ErrNoDebugFile, f.name)}, wrong...)...)
	}
	for _, path := range f.debugDirs.byLink(f.name, link) {
		debug, err := openDebug(path, func(d *File) error { return f.belongs(d, id, sum) })
		if err == nil {
			return debug, nil
		}
		wrong = appendWrong(wrong, err)
	}
	return nil, errors.Join(append([]error{fmt.Errorf("%w of %s", ErrNoDebugFile, f.name)}, wrong...)...)
}

// appendWrong keeps what a person can mend: most paths just do not exist.
func appendWrong(errs []error, err error) []error {
	if errors.Is(err, os.ErrNotExist) {
		return errs
	}
	return append(errs, err)
}

func openDebug(path string, check func(*File) error) (*File, error) {
	debug, err := Open(path)
	if err != nil {
		return nil, err
	}
	if err := check(debug); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), debug.Close())
	}
	return debug, nil
}

func sameBuildID(debug *File, id string) error {
	if got := debug.BuildID(); got != id {
		return fmt.Errorf("build id %s instead of %s", got, id)
	}
	return nil
}

// belongs: a build id is proof; without one the checksum is.
func (f *File) belongs(debug *File, id string, sum uint32) error {
	if debug.key == f.key {
		return errors.New("the file itself")
	}
	if id != "" && debug.BuildID() != "" {
		return sameBuildID(debug, id)
	}
	got, err := f.checksums.of(debug.key, debug.checksum)
	if err == nil && got != sum {
		err = fmt.Errorf("checksum %08x instead of %08x", got, sum)
	}
	return err
}

func (f *File) checksum() (uint32, error) {
	if f.size > maxDebugFileBytes {
		return 0, fmt.Errorf("%w: %d bytes", ErrUnsupported, f.size)
	}
	sum := crc32.NewIEEE()
	_, err := io.Copy(sum, io.NewSectionReader(f.at, 0, int64(f.size)))
	return sum.Sum32(), err
}

// debugLink reads .gnu_debuglink: a file name, padded to four bytes, and a
// checksum. A name with a directory in it would lead anywhere.
func (l *layout) debugLink() (name string, sum uint32, err error) {
	data, err := l.Section(".gnu_debuglink", maxNameBytes)
	if err != nil {
		return "", 0, err
	}
	end := bytes.IndexByte(data, 0)
	at := (end + 4) &^ 3
	if end <= 0 || at+4 > len(data) || bytes.IndexByte(data[:end], '/') >= 0 {
		return "", 0, fmt.Errorf("%w: .gnu_debuglink", ErrCorrupt)
	}
	return string(data[:end]), binary.LittleEndian.Uint32(data[at:]), nil
}

func (d debugDirs) byBuildID(id string) []string {
	const prefix = 2 // hexadecimal digits that name the directory
	if len(id) <= prefix {
		return nil
	}
	var paths []string
	for _, root := range d.Roots {
		paths = append(paths, filepath.Join(root, ".build-id", id[:prefix], id[prefix:]+".debug"))
	}
	for _, dir := range d.Downloads {
		paths = append(paths, filepath.Join(dir, id, "debuginfo"))
	}
	return paths
}

func (d debugDirs) byLink(binary, link string) []string {
	dir := filepath.Dir(binary)
	paths := []string{filepath.Join(dir, link), filepath.Join(dir, ".debug", link)}
	for _, root := range d.Roots {
		paths = append(paths, filepath.Join(root, dir, link))
	}
	return paths
}
