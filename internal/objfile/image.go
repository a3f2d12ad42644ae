// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Image is an ELF object as one process has mapped it.
type Image struct {
	// Path of the file, without " (deleted)".
	Path string
	// Device and Inode as the maps file tells them.
	Device, Inode uint64
	// Bias is added to a virtual address of the file to get the address in
	// the process; 0 for programs at fixed addresses.
	Bias uint64
	// Start and End enclose the object's segments in the process.
	Start, End uint64

	pid     int
	soName  string
	known   string // of the program: its other names, see knownAs, each ended by a zero byte
	program bool   // asks for a loader: the program itself, or a library that can be run
	mapping Mapping
	cache   *Cache
	key     fileKey // in the cache
}

// FileVersion tells files, and what stood in one file after the other, apart. It can be
// compared.
type FileVersion struct{ key fileKey }

// Version is that of the file when the image was found. What is remembered of a file is
// kept by it: an inode may be overwritten, and given to another file.
func (i Image) Version() FileVersion { return FileVersion{i.key} }

// Name is the base name of the file.
func (i Image) Name() string { return filepath.Base(i.Path) }

// ProgramName is the name of the file, and of a program that of the symbolic link which
// was executed: redis-server, where that leads to redis-check-rdb.
func (i Image) ProgramName() string {
	executed, _, _ := strings.Cut(i.known, "\x00")
	if file, err := filepath.EvalSymlinks(executed); err == nil && file == i.Path {
		return filepath.Base(executed)
	}
	return i.Name()
}

// Main says whether it is the program that the process executes.
func (i Image) Main() bool { return i.known != "" }

// Matches says whether a pattern (path.Match) matches the base name or the name
// under which the object is linked (DT_SONAME) or, if it holds a slash, the
// whole path. The former is often a link to what is mapped: libstdc++.so.6 to
// libstdc++.so.6.0.30. A program has the names by which people know it, too: those of
// the symbolic link that was executed, and what ps(1) shows. The empty pattern matches
// everything.
func (i Image) Matches(pattern string) bool {
	switch {
	case pattern == "":
		return true
	case filepath.Base(pattern) != pattern:
		return match(pattern, i.Path) || i.isKnownAs(pattern)
	}
	return match(pattern, i.Name()) || i.soName != "" && match(pattern, i.soName) || i.isKnownAs(pattern)
}

// isKnownAs says whether a pattern matches one of the names of the program, or is a
// path that leads to the object by symbolic links.
func (i Image) isKnownAs(pattern string) bool {
	for name := range strings.SplitSeq(i.known, "\x00") {
		if name != "" && match(pattern, name) {
			return true
		}
	}
	if filepath.Base(pattern) == pattern {
		return false
	}
	file, err := filepath.EvalSymlinks(pattern)
	return err == nil && file == i.Path
}

func match(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}

// Open opens the file of the image, which is the one that is mapped and no
// other. The caller closes it. [ErrReplaced] where it cannot be opened. While
// the cache has it open this takes no system call.
func (i Image) Open() (*File, error) {
	if file := i.cache.lookup(i.key); file != nil {
		return file, nil
	}
	file, err := OpenMapped(i.pid, i.mapping)
	if err != nil {
		return nil, err
	}
	return i.cache.OpenFile(file)
}

// OpenFile opens the same file as Open, without reading it. The caller closes
// it.
func (i Image) OpenFile() (*os.File, error) { return OpenMapped(i.pid, i.mapping) }

// Symbol finds a symbol in the image's file; see [File.Symbol].
func (i Image) Symbol(name string, kind SymbolKind) (Symbol, error) {
	file, err := i.Open()
	if err != nil {
		return Symbol{}, err
	}
	defer file.Close()
	return file.SymbolOf(name, kind)
}

// Address is where a virtual address of the file lies in the process.
func (i Image) Address(virtual uint64) uint64 { return virtual + i.Bias }
